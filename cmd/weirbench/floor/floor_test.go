package floor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/floor"
	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/sink"
)

// TestRun sends all lines, including later ones and a line that is incomplete at
// first.
func TestRun(t *testing.T) {
	s, err := sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, done := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	dir := t.TempDir()
	w, err := logfiles.New(logfiles.Options{Dir: dir, Files: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	arrive := func(n int64) {
		for s.Stats(false).Lines < n {
		}
	}
	write(w.Write(0, 7000)) // more than one chunk
	write(w.Write(1, 5))
	runCtx, stop := context.WithCancel(t.Context())
	go func() {
		done <- floor.Run(runCtx, filepath.Join(dir, "*.log"), "http://"+s.Address()+"/loki/api/v1/push")
	}()
	arrive(7005)
	write(w.WriteTorn(1, 5, func() { arrive(7009) }))
	arrive(7010)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if st := s.Stats(true); st.Gaps+st.Duplicates+st.Reordered+st.Unnumbered > 0 || st.Streams != 2 || len(st.Last) != 7 {
		t.Errorf("got %+v", st)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestRunErrors(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	defer refuses.Close()
	f := func(want, pattern, url string) {
		t.Helper()
		if err := floor.Run(t.Context(), pattern, url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(file, []byte("a line\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f("cannot find files", "[", refuses.URL)
	f("answers 500", file, refuses.URL)
	f("cannot push", file, "http://127.0.0.1:0")
	f("cannot read", filepath.Dir(file), refuses.URL)
}
