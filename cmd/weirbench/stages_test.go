package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestStages(t *testing.T) {
	var all strings.Builder
	n := 0
	line := func(name string) {
		n++
		fmt.Fprintf(&all, "Benchmark%s-2  \t 100\t  1000 ns/op\t 20 MB/s\t %d.4 ns/sample\t 5 B/op\n", strings.ReplaceAll(name, " ", "_"), n)
	}
	for _, s := range stages {
		line(s.bench)
		for _, b := range s.beside {
			line(b)
		}
	}
	f := func(code int, want, input string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if got := execute(context.Background(), []string{"stages"}, strings.NewReader(input), &out, &errOut); got != code || !strings.Contains(out.String()+errOut.String(), want) {
			t.Errorf("got %d and\n%s%s\nwant %d and %q", got, &out, &errOut, code, want)
		}
	}
	good := "goos: linux\n" + all.String() + "PASS\nok  \tx\t1.0s\n"
	f(0, "| body as in the previous scrape | 1.4 | compare bytes 2.4, find lines 3.4, fingerprint 4.4, parse float 5.4, parse float, strconv 6.4, textparse 7.4 |\n| body with a line more | 8.4 |  |\n| body with 1 line in 20 renamed | 9.4 | none 10 |\n", good)
	f(1, "cannot find benchmark Intake/node_exporter.txt/layout", "")
	f(1, "cannot make a table of benchmarks that failed: FAIL", good+"FAIL\tx\n")
	f(1, "cannot read", "Benchmarkx-2 1 y ns/sample\n")
}
