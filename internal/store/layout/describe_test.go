package layout

import "testing"

func TestDescribeKey(t *testing.T) {
	data := DataKey(nil, 3, mustPath(t, "users/ann"))
	for want, key := range map[string][]byte{
		"metadata":                   FormatKey,
		"database 3 /users/ann":      data,
		"database 3 /":               DataPrefix(3),
		"the settings of database 3": SettingKey(3, "rules"),
		"what connections have left to be written in database 3": LeftKey(3, "-0123456789012345678", 1),
		"the change log of database 3 at 7":                      LogKey(nil, 3, 7),
		"the change log of database 3":                           AppendSpace(nil, SpaceLog, 3),
	} {
		if got := DescribeKey(key); got != want {
			t.Errorf("DescribeKey(%x) = %q, want %q", key, got, want)
		}
	}
}
