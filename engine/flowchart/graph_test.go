package flowchart_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/service"
)

// TestGraph: groups are those of modules, foreach blocks and their items; services are
// there if they refer to something.
func TestGraph(t *testing.T) {
	nodes := []service.Info{
		{ID: "local.file.p", Name: "local.file", Position: "c.alloy:1"},
		{ID: "pipe.one", Name: "pipe", DependsOn: []string{"local.file.p"}},
		{ID: "pipe.one/foreach.each", Name: "foreach"},
		{ID: "pipe.one/foreach.each/a-1/x.y.z", Name: "x.y", Health: component.Health{State: component.Unhealthy}, DependsOn: []string{"s"}, SendsTo: []string{"s", "gone"}},
		{ID: "foreach.none", Name: "foreach"},
		{ID: "s", Name: "s"},
	}
	services := []service.Info{{ID: "telemetry", Name: "logging"}, {ID: "http", Name: "http", DependsOn: []string{"local.file.p"}}}
	got, err := json.MarshalIndent(flowchart.Of(nodes, services, nil), "", "")
	if err != nil {
		t.Fatal(err)
	}
	compact := strings.Join(strings.Split(strings.ReplaceAll(string(got), "{\n", "{"), ",\n\""), ",\"")
	want := `{"nodes": [
{"id": "local.file.p","name": "local.file","label": "p","group": "","position": "c.alloy:1","state": "unknown"
},
{"id": "pipe.one/foreach.each/a-1/x.y.z","name": "x.y","label": "z","group": "pipe.one/foreach.each/a-1","position": "","state": "unhealthy"
},
{"id": "s","name": "s","label": "","group": "","position": "","state": "unknown"
},
{"id": "http","name": "http","label": "","group": "","position": "","state": "unknown"
}
],"edges": [
{"from": "pipe.one/foreach.each/a-1/x.y.z","to": "s","reference": false
},
{"from": "local.file.p","to": "http","reference": true
}
],"groups": [
{"id": "pipe.one","label": "pipe.one","group": "","kind": "module","state": "unknown"
},
{"id": "pipe.one/foreach.each","label": "foreach.each","group": "pipe.one","kind": "foreach","state": "unknown"
},
{"id": "pipe.one/foreach.each/a-1","label": "a-1","group": "pipe.one/foreach.each","kind": "item","state": "unknown"
},
{"id": "foreach.none","label": "foreach.none","group": "","kind": "foreach","state": "unknown"
}
]
}`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(compact, "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestGraphRates: the rates of edges add up to those of the nodes, and follow from them
// where they can.
func TestGraphRates(t *testing.T) {
	// A node is "name in out to,to".
	f := func(text, want string) {
		t.Helper()
		var nodes []service.Info
		rates := map[string]*flowchart.Rates{}
		for line := range strings.Lines(text) {
			var name, to string
			r := &flowchart.Rates{}
			fmt.Sscan(line, &name, &r.In, &r.Out, &to)
			i := service.Info{ID: name, Name: name}
			if to != "" {
				i.SendsTo = strings.Split(to, ",")
			}
			nodes, rates[name] = append(nodes, i), r
		}
		var got []string
		for _, e := range flowchart.Of(nodes, nil, func(id string) *flowchart.Rates { return rates[id] }).Edges {
			text := fmt.Sprintf("%s-%s %g", e.From, e.To, *e.Rate)
			if e.Estimated {
				text += "?"
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
		}
	}
	f("a 0 5 b\nb 5 0", "a-b 5")
	// Fan-in and fan-out.
	f("a 0 5 c\nb 0 3 c\nc 8 16 d,e\nd 8 0\ne 8 0", "a-c 5, b-c 3, c-d 8, c-e 8")
	// c takes another share than d.
	f("a 0 10 c,d\nb 0 7 d\nc 2 0\nd 15 0", "a-c 2, a-d 8, b-d 7")
	// Two nodes send to the same two.
	f("a 0 10 c,d\nb 0 6 c,d\nc 9 0\nd 7 0", "a-c 5?, a-d 5, b-c 4, b-d 2")
	// A cycle, an edge to itself, and counters that were read at different moments.
	f("a 2 1 b\nb 1 2 a", "a-b 1, b-a 2")
	f("a 3 3 a", "a-a 3")
	f("a 0 5 c,d\nc 6 0\nd 1 0", "a-c 6, a-d 0")
}
