package scripttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files that run side by side are reported in order, the same whatever their
// number.
func TestParallel(t *testing.T) {
	var files strings.Builder
	for i := range 20 {
		fmt.Fprintf(&files, "-- scripts/a/s%02d.lua --\n%s", i, mark("x", "x"))
		fmt.Fprintf(&files, "-- scripts/a/s%02d_test.lua --\nlocal t = weir.test.component('s%02d.lua')\n"+
			"it('marks', function() assert.same({ 'x' }, t:metrics('up 1'):label_values('mark')) end)\n", i, i)
	}
	write(t, archive(files.String()))
	var first string
	for _, n := range []int{1, 2, 7, 100} {
		o := options()
		o.Parallel = n
		o.Coverage = n == 7
		got := report(t, o)
		if first == "" {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%d at once (-one +several):\n%s", n, diff)
		}
	}
	if !strings.HasSuffix(first, "40 passed\n") {
		t.Errorf("got %s", first)
	}
}
