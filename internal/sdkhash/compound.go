package sdkhash

import (
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// MaxPosts is the largest number of posts that a Compound has. Clients choose ranges of
// ten times the square root of what they hold: 10,000 of them are 10 GB.
const MaxPosts = 10_000

// A Compound is what a client says of its leaves, cut into ranges. The leaves are in the
// order of their paths; range i are those behind post i-1 up to and including post i, and
// the last range are those behind the last post. The zero Compound says nothing.
type Compound struct {
	hashes []string // one more than posts
	posts  []string // paths, as the client spelled them
}

// NewCompound returns what a client says by hashes and posts, or false if that makes no
// sense. It keeps both slices.
func NewCompound(hashes, posts []string) (Compound, bool) {
	if len(hashes) != len(posts)+1 || len(posts) > MaxPosts {
		return Compound{}, false
	}
	for _, hash := range hashes {
		if hash != "" && len(hash) != hashBytes {
			return Compound{}, false
		}
	}
	var before, keys []string
	for i, post := range posts {
		var ok bool
		if keys, ok = appendPost(keys[:0], post); !ok || i > 0 && comparePaths(before, keys) >= 0 {
			return Compound{}, false
		}
		before, keys = keys, before
	}
	return Compound{hashes, posts}, true
}

// priorityKey stands for the priority of an object among its keys.
const priorityKey = ".priority"

// appendPost appends the keys of a post. It is the path of a leaf, below the location of
// the listen, or of the priority of an object. The root is "/".
func appendPost(keys []string, post string) ([]string, bool) {
	post = strings.Trim(post, "/")
	if len(post) > (tree.MaxDepth+1)*(tree.MaxKeyBytes+1) {
		return nil, false
	}
	for key := range strings.SplitSeq(post, "/") {
		switch {
		case post == "":
			return keys, true
		case len(keys) > tree.MaxDepth || len(keys) > 0 && keys[len(keys)-1] == priorityKey:
			return nil, false
		case key != priorityKey && tree.CheckKey(key) != nil:
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, len(keys) <= tree.MaxDepth || keys[tree.MaxDepth] == priorityKey
}

// comparePaths orders paths by their keys; a path is before those below it.
func comparePaths(a, b []string) int { return slices.CompareFunc(a, b, tree.CompareKeys) }

// post returns the keys of post i, in the memory of keys.
func (c Compound) post(keys []string, i int) []string {
	if i >= len(c.posts) {
		return nil
	}
	keys, _ = appendPost(keys[:0], c.posts[i])
	return keys
}

// isPriority reports whether post i is the priority of an object.
func (c Compound) isPriority(i int) bool {
	return strings.HasSuffix(c.posts[i], priorityKey) // a key holds no dot
}
