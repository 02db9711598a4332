package component_test

import (
	"testing"

	"github.com/weir-run/weir/engine/component"
)

func TestHideURLs(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got := component.HideURLs(text)
		if again := component.HideURLs(got); again != got {
			t.Errorf("%s: got %s, and %s when it is hidden again", text, got, again)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("no URL: a=b?c=d", "no URL: a=b?c=d")
	f("http://h/x", "http://h/x")
	f("http://h/utf8/0 and http://h/k8s/metrics", "http://h/utf8/0 and http://h/k8s/metrics")
	f(`Get "http://h/x?token=SECRET123": refused`, `Get "http://h/x?token=(hidden)": refused`)
	f("http://h/x?a=SECRET123&b&c=SECRET123#f and https://h?x=SECRET123", "http://h/x?a=(hidden)&b&c=(hidden)#f and https://h?x=(hidden)")
	f("(see http://h/x?a=SECRET123).", "(see http://h/x?a=(hidden)).")
	f("postgres://joe:SECRET123@h/db?sslmode=off", "postgres://joe:(hidden)@h/db?sslmode=(hidden)")
	f("http://joe:SEC@RET123@h/", "http://joe:(hidden)@h/")
	f("http://joe@h/", "http://joe@h/")

	// Paths.
	for _, u := range []string{
		"http://h:9090/api/v1/write", "http://h/loki/api/v1/push", "https://h/api/prom/push", "http://h/insert/0/prometheus/api/v1/write", "http://h/api/v1/metrics/write",
		"http://h/insert/1234/prometheus/api/v1/write", "http://h/actuator/prometheus", "http://h/prometheus/api/v1/remote_write/", "http://h//x", "https://h/*", "file:///etc/Weir/x1y2.txt",
		"http://127.0.0.1:12345/api/v0/component/http.alertmanager.default/hook",
	} {
		f(u, u)
	}
	f("https://hooks.slack.com/services/T/B/xyz", "https://hooks.slack.com/services/(hidden)")
	f("https://hooks.slack.com/services/T00000000/B00000000/sEcReT", "https://hooks.slack.com/services/(hidden)")
	f("https://api.telegram.org/bot123456:ABC-DEF1234ghIkl/sendMessage", "https://api.telegram.org/(hidden)")
	f("https://discord.com/api/webhooks/1234567890/abc?wait=true", "https://discord.com/api/webhooks/(hidden)?wait=(hidden)")
	f("https://h/hook/abcdefghijklmnopqrstuvwxyzabcdefghij", "https://h/hook/(hidden)")
	f("https://h/hook/%73ecret#f", "https://h/hook/(hidden)#f")
	f("cannot ask https://h/v1/region: it redirects (https://h/SECRET123), https://h/x.", "cannot ask https://h/v1/region: it redirects (https://h/(hidden)), https://h/x.")
}
