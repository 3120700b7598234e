package archive

import (
	"fmt"
	"strconv"
	"strings"
)

// claimName is the object that says who writes.
const claimName = "claim"

// linesPrefix begins the names of all other objects.
const linesPrefix = "lines/"

// afterSlash sorts directly after all names that have a slash in its place.
const afterSlash = "0"

func epochText(epoch uint64) string { return fmt.Sprintf("%016x", epoch) }

func linePrefix(epoch uint64) string { return linesPrefix + epochText(epoch) + "/" }

func segmentsPrefix(epoch uint64) string { return linePrefix(epoch) + "segments/" }

func segmentName(epoch, number uint64) string {
	return fmt.Sprintf("%s%012d", segmentsPrefix(epoch), number)
}

func indexPrefix(epoch uint64) string { return linePrefix(epoch) + "index/" }

// indexName is the name of the index of a group, which is named by its last segment.
func indexName(epoch, last uint64) string { return fmt.Sprintf("%s%012d", indexPrefix(epoch), last) }

func basesPrefix(epoch uint64) string { return linePrefix(epoch) + "bases/" }

func basePrefix(epoch, number uint64) string {
	return fmt.Sprintf("%s%012d/", basesPrefix(epoch), number)
}

func manifestName(epoch, number uint64) string { return basePrefix(epoch, number) + "base.json" }

// epochOf returns the epoch of the line that an object belongs to.
func epochOf(name string) (uint64, error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(name, linesPrefix), "/")
	epoch, err := strconv.ParseUint(text, 16, 64)
	if err != nil || epochText(epoch) != text || !strings.HasPrefix(name, linesPrefix) {
		return 0, fmt.Errorf("%s does not belong to an archive", name)
	}
	return epoch, nil
}

// numberOf returns the number that follows a prefix in a name, and what comes after it.
func numberOf(name, prefix string) (number uint64, rest string, err error) {
	text, ok := strings.CutPrefix(name, prefix)
	text, rest, _ = strings.Cut(text, "/")
	number, err = strconv.ParseUint(text, 10, 64)
	if err != nil || !ok || fmt.Sprintf("%012d", number) != text {
		return 0, "", fmt.Errorf("%s does not belong to an archive", name)
	}
	return number, rest, nil
}
