package wire

import (
	"net/http"
	"testing"
)

// TestSDKOf: whatever clients say that they are, there are few kinds of them.
func TestSDKOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"": "other", "curl/8": "other", "Firebase/5/": "other", "Firebase/5/1/2/3/4": "other", "Firebase/6/1/34/Android": "other",
		"Mozilla/5.0 (X11; Linux x86_64)":                   "browser",
		"Firebase/5/12.0.0/linux/Node":                      "node",
		"Firebase/5/13.10.0/linux/AdminNode":                "admin-node",
		"Firebase/5/9.10.0/17/AdminJava":                    "admin-java",
		"Firebase/5/22.0.0/34/Android":                      "android",
		"Firebase/5/12.19.0/18.0/iPhone_com.example.app":    "apple",
		"Firebase/5/12.19.0/15.0/macOS_com.example.desktop": "apple",
		"Firebase/5/13.0.0/cpp/linux":                       "cpp",
	} {
		if got := sdkNames[sdkOf(http.Header{"User-Agent": {agent}})]; got != want {
			t.Errorf("%q is taken for %s, want %s", agent, got, want)
		}
	}
}
