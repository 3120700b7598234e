package wire

import "testing"

// TestGetIsNotOvertaken: what a client asks for comes before what is newer, also if the answer to a write before it waits for that.
// Each answer is that to its request.
func TestGetIsNotOvertaken(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	k := begin(t, newFront(false), db)
	k.send(`1 q {"p":"/a/b","h":""}`)
	k.expect(`1 ok {}`)
	k.send(`2 p {"p":"/a/b","d":1}`, `3 g {"p":"/a","q":{}}`, `4 s {"c":{}}`)
	db.Put("/a/b", `2`)
	db.WaitForWatches()
	k.expect(`d {"p":"a/b","d":1}`, `3 ok {"b":1}`, `d {"p":"a/b","d":2}`, `2 ok ""`, `4 ok ""`)
}
