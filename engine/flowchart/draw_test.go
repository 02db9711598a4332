package flowchart_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/service"
)

var update = flag.Bool("update", false, "rewrite the files that drawings are compared with")

// house is a graph with everything there is: groups in groups, edges into, out of and
// between them, references, a cycle, nodes alone.
func house() *flowchart.Graph {
	var nodes []service.Info
	node := func(group, name, label string, sendsTo, dependsOn []string) {
		nodes = append(nodes, service.Info{ID: group + name + "." + label, Name: name, SendsTo: sendsTo, DependsOn: dependsOn})
	}
	to := func(ids ...string) []string { return ids }
	node("", "discovery.docker", "all", nil, nil)
	node("", "app", "one", nil, to("discovery.docker.all")) // not drawn
	node("app.one/", "prometheus.scrape", "s", to("app.one/prometheus.relabel.r", "app.one/sub.x/expr.filter.a"), to("discovery.docker.all", "app.one"))
	node("app.one/", "prometheus.relabel", "r", to("prometheus.remote_write.default"), to("gone"))
	node("app.one/", "sub", "x", nil, nil)
	node("app.one/sub.x/", "expr.filter", "a", to("app.one/sub.x/expr.filter.b"), nil)
	node("app.one/sub.x/", "expr.filter", "b", to("app.two/prometheus.relabel.r"), nil)
	node("", "app", "two", nil, nil)
	node("app.two/", "prometheus.relabel", "r", to("prometheus.remote_write.default"), nil)
	node("", "foreach", "none", nil, to("discovery.docker.all"))
	node("", "prometheus.remote_write", "default", nil, to("local.file.password", "app.two"))
	node("", "local.file", "password", nil, nil)
	node("", "a.cycle", "a", to("a.cycle.b"), to("a.cycle.b"))
	node("", "a.cycle", "b", nil, to("a.cycle.a"))
	node("", "a.name.of.more.than.forty.characters.that.is.cut", "x", nil, nil)
	nodes = append(nodes, service.Info{ID: `<alone & "quoted">`, Name: `<alone & "quoted">`})
	return flowchart.Of(nodes, nil, nil)
}

func TestGolden(t *testing.T) {
	var dot, mermaid bytes.Buffer
	if err := house().WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	if err := house().WriteMermaid(&mermaid); err != nil {
		t.Fatal(err)
	}
	f := func(name, got string) {
		t.Helper()
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
		}
	}
	f("house.dot", dot.String())
	f("house.mermaid", mermaid.String())
}
