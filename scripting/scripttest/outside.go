package scripttest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
)

// denied is what scripts under test find outside: nothing, whatever their
// blocks grant. What they need counts as granted, so that a test need not say so.
func denied() scripting.Outside {
	return scripting.Outside{
		GrantAll:  true,
		HTTP:      deniedHTTP{},
		LookupEnv: func(string) (string, bool) { return "", false },
		ReadFile: func(path string, _ int64) ([]byte, error) {
			return nil, fmt.Errorf("cannot read %s: a test reads no files", path)
		},
		Exec: func(_ context.Context, c egress.Command) (egress.CommandResult, error) {
			return egress.CommandResult{}, fmt.Errorf("cannot run %s: a test runs no programs", c.Path)
		},
	}
}

type deniedHTTP struct{}

// RoundTrip refuses every request.
func (deniedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a test has no network (%s %s)", r.Method, r.URL.Path)
}
