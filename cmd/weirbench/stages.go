package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// stages are the steps of a sample through weir, in order, each with its
// benchmark and the benchmarks with which it is compared. The names are those
// that go test prints.
var stages = []struct {
	stage, bench string
	beside       []string
}{
	{"body as in the previous scrape", "Intake/node_exporter.txt/layout", []string{"Floor/compare bytes", "Floor/find lines", "Floor/fingerprint", "Floor/parse float", "Floor/parse float, strconv", "Intake/node_exporter.txt/textparse"}},
	{"body with a line more", "Intake/node_exporter.txt/changed", nil},
	{"body with 1 line in 20 renamed", "Churn/1 in 20", []string{"Churn/none"}},
	{"body that is the first", "Churn/first", nil},
	{"relabel, the same series as before", "Apply/1000", nil},
	{"remote write 1.0, with snappy", "Encode/prometheus.WriteRequest/as they are", []string{"Compress/s2 fast", "Compress/s2 better", "Compress/golang"}},
	{"remote write 2.0, with snappy", "Encode/io.prometheus.write.v2.Request/as they are", nil},
	{"journal, append", "Journal/append", nil},
	{"journal, append, read and acknowledge", "Journal/append, read and acknowledge", nil},
}

func stagesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stages",
		Short: "Make a table of what each stage costs, from what go test -bench prints",
		Long: `Make a table of what a sample costs at each stage, next to the floor, from the
output of go test -bench, which is read from the standard input.`,
		Example: "  make bench-stages",
		Args:    cobra.NoArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			found, err := readBenchmarks(cmd.InOrStdin())
			if err != nil {
				return err
			}
			return writeStages(cmd.OutOrStdout(), found)
		}),
	}
}

// readBenchmarks returns the ns/sample of benchmarks by name, without the prefix
// and without the number of processors at the end; _ stands for spaces.
func readBenchmarks(r io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "FAIL") || strings.HasPrefix(s.Text(), "--- FAIL") {
			return nil, fmt.Errorf("cannot make a table of benchmarks that failed: %s", s.Text())
		}
		fields := strings.Fields(s.Text())
		name, ok := strings.CutPrefix(s.Text(), "Benchmark")
		if !ok || len(fields) < 4 {
			continue
		}
		name, _, _ = strings.Cut(name, "\t")
		name = strings.TrimSpace(name)
		if i := strings.LastIndexByte(name, '-'); i >= 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		for i := 1; i < len(fields); i++ {
			if fields[i] != "ns/sample" {
				continue
			}
			v, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("cannot read %q: %w", s.Text(), err)
			}
			out[strings.ReplaceAll(name, "_", " ")] = v
		}
	}
	return out, s.Err()
}

// writeStages writes the table. A stage without a measurement is an error.
func writeStages(w io.Writer, found map[string]float64) error {
	get := func(name string) (float64, error) {
		v, ok := found[strings.ReplaceAll(name, "_", " ")]
		if !ok {
			return 0, fmt.Errorf("cannot find benchmark %s with its ns/sample: is it in the input?", name)
		}
		return v, nil
	}
	var b strings.Builder
	b.WriteString("| stage | ns per sample | compare |\n|---|---|---|\n")
	for _, s := range stages {
		v, err := get(s.bench)
		if err != nil {
			return err
		}
		var beside []string
		for _, name := range s.beside {
			o, err := get(name)
			if err != nil {
				return err
			}
			beside = append(beside, name[strings.LastIndexByte(name, '/')+1:]+" "+nanoseconds(o))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.stage, nanoseconds(v), strings.Join(beside, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func nanoseconds(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
