package registry

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// runTests runs the tests of a script as it is on disk now and counts what they run of
// it. It changes nothing: the script is compiled with counters, in a catalog of its own.
func (c *catalog) runTests(ctx context.Context, name string) (report *node.TestReport, err error) {
	err = runBounded(ctx, c.o.Compilers.reports, func() (err error) {
		report, err = c.runTestsNow(ctx, name)
		return err
	})
	return report, err
}

func (c *catalog) runTestsNow(ctx context.Context, name string) (*node.TestReport, error) {
	o := c.o
	o.Probe = &scripting.Probe{Coverage: &scripting.Coverage{}}
	o.Versions, o.LastGood, o.Checks, o.Logger = nil, false, nil, slog.New(slog.DiscardHandler)
	if o.Test == nil { // test files are looked for
		o.Test = func(context.Context, Tested) error { return nil }
	}
	made, err := NewCatalog(o)
	if err != nil {
		return nil, err
	}
	own := made.(*catalog)
	index, _ := own.index()
	files := index[name]
	if files == nil || len(files.user) == 0 {
		return nil, fmt.Errorf("the file of %s has been removed", name)
	}
	t := Tested{Folder: own.folder()}
	if t.Script, err = own.read(files.user[0]); err != nil {
		return nil, err
	}
	own.Lookup(name)
	// The text that was compiled is the one that is tested. A broken script is tested too:
	// the report has its error.
	if s := own.script(name); s != nil {
		t.Script = s.File
		if s.trial != nil {
			t.Test = s.trial.test
		}
	}
	return c.o.Report(ctx, t, o.Probe), nil
}
