package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// TestSettings: where each setting comes from.
func TestSettings(t *testing.T) {
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Bool("help", false, "help")
	f.String("storage.path", "data", "storage")
	f.Bool("watch", true, "watch")
	if err := f.Parse([]string{"--watch=false"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range settingsOf(f, func(name string) (string, bool) { return map[string]string{"GOMEMLIMIT": "1GiB"}[name], true }) {
		got = append(got, fmt.Sprintf("%s=%s (%s, %s)", s.Name, s.Value, s.Default, s.SetBy))
	}
	want := []string{
		"--storage.path=data (data, default)", "--watch=false (true, flag)",
		"GOGC=set by weir (set by weir, default)", "GOMEMLIMIT=1GiB (no limit, environment)", "GOMAXPROCS=number of CPUs (number of CPUs, default)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBundle: a bundle has all files; the reason why one is missing is in it.
func TestBundle(t *testing.T) {
	var asked []string
	get := func(_ context.Context, path string) (io.ReadCloser, error) {
		asked = append(asked, path)
		if path == "/metrics" {
			return nil, errors.New("weir is busy")
		}
		return io.NopCloser(strings.NewReader("answer to " + path)), nil
	}
	var b bytes.Buffer
	missing, err := writeBundle(t.Context(), &b, get, 7)
	if err != nil || missing == nil || missing.Error() != "cannot add metrics.txt: weir is busy" {
		t.Fatalf("got %v, %v", missing, err)
	}
	if !slices.Contains(asked, "/debug/pprof/profile?seconds=7") {
		t.Errorf("asked for %q", asked)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		t.Helper()
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	if got := text("config.txt"); got != "answer to /api/v0/config" {
		t.Errorf("got %q", got)
	}
	if got := text("errors.txt"); got != missing.Error()+"\n" {
		t.Errorf("got %q", got)
	}
	if _, err := z.Open("metrics.txt"); err == nil {
		t.Error("metrics.txt is there")
	}
}
