package console

import (
	"net/http"
	"strings"
)

// policy is what the page may do: run and show what comes from this listener, and
// send to nobody else. Text can never become markup or a script.
var policy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self' data:",
	"font-src 'self'",
	"connect-src 'self'",
	"frame-ancestors 'none'",
	"base-uri 'none'",
	"form-action 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types 'none'",
}, "; ")

// permissions denies the page everything that a browser asks about, but for writing to
// the clipboard.
var permissions = denied(
	"accelerometer", "autoplay", "camera", "clipboard-read", "display-capture",
	"encrypted-media", "fullscreen", "gamepad", "geolocation", "gyroscope", "hid",
	"idle-detection", "local-fonts", "magnetometer", "microphone", "midi", "payment",
	"picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "serial",
	"storage-access", "usb", "window-management", "xr-spatial-tracking",
) + ", clipboard-write=(self)"

func denied(features ...string) string { return strings.Join(features, "=(), ") + "=()" }

// setHeaders sets what every answer of the console carries. The page is never kept: it
// names the files of this version.
func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Permissions-Policy", permissions)
	header.Set("Cache-Control", "no-store")
}
