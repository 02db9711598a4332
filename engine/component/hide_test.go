package component_test

import (
	"testing"

	"github.com/weir-run/weir/engine/component"
)

func TestHideURLs(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := component.HideURLs(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("no URL: a=b?c=d", "no URL: a=b?c=d")
	f("http://h/x", "http://h/x")
	f(`Get "http://h/x?token=SECRET123": refused`, `Get "http://h/x?token=(hidden)": refused`)
	f("http://h/x?a=SECRET123&b&c=SECRET123#f and https://h?x=SECRET123", "http://h/x?a=(hidden)&b&c=(hidden)#f and https://h?x=(hidden)")
	f("postgres://joe:SECRET123@h/db?sslmode=off", "postgres://joe:(hidden)@h/db?sslmode=(hidden)")
	f("http://joe:SEC@RET123@h/", "http://joe:(hidden)@h/")
	f("http://joe@h/", "http://joe@h/")
}
