package rule

import (
	"reflect"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/ruleset"
)

// Relabeler applies rules to batches. The result for a series, or a stream, is
// computed once and cached until the series is released: the same input handle
// gives the same output handle in every batch.
//
// All methods are safe for concurrent use.
type Relabeler struct {
	*ruleset.Mapper
	rules  []*Rule
	cfgs   []*relabel.Config
	public bool
}

// NewRelabeler returns a Relabeler for rules in the given order. They must not
// be modified any more.
func NewRelabeler(rules []*Rule) *Relabeler {
	r := &Relabeler{rules: rules, cfgs: Configs(rules)}
	r.Mapper = ruleset.NewMapper(r.derive)
	return r
}

// Apply returns b after the rules, and the number of dropped rows. It returns b
// itself if nothing changes; otherwise, unchanged columns are shared. The
// result may be empty.
func (r *Relabeler) Apply(b *batch.Metrics) (out *batch.Metrics, dropped int) {
	if len(r.cfgs) == 0 {
		return b, 0
	}
	return r.Mapper.Apply(b)
}

// ApplyLogs is like Apply, for a batch of log lines, whose streams are
// relabelled like series.
func (r *Relabeler) ApplyLogs(b *batch.Logs) (out *batch.Logs, dropped int) {
	if len(r.cfgs) == 0 {
		return b, 0
	}
	return r.Mapper.ApplyLogs(b)
}

// Is reports whether its rules are the given ones.
func (r *Relabeler) Is(rules []*Rule) bool {
	return len(r.rules) == len(rules) && (len(rules) == 0 || reflect.DeepEqual(r.rules, rules))
}

// scratch is the memory for deriving a series, which happens once per series.
type scratch struct {
	builder *labels.Builder
	in      labels.ScratchBuilder
	out     []batch.Label
}

var scratches = sync.Pool{New: func() any {
	return &scratch{builder: labels.NewBuilder(labels.EmptyLabels()), in: labels.NewScratchBuilder(16)}
}}

func (r *Relabeler) derive(s *batch.Series) *batch.Series {
	c := scratches.Get().(*scratch)
	defer scratches.Put(c)
	c.in.Reset()
	for n, v := range s.Labels() {
		c.in.Add(n, v)
	}
	c.builder.Reset(c.in.Labels())
	if !relabel.ProcessBuilder(c.builder, r.cfgs...) {
		return nil
	}
	clear(c.out)
	c.out = c.out[:0]
	c.builder.Labels().Range(func(l labels.Label) {
		if l.Value != "" && !(r.public && strings.HasPrefix(l.Name, "__")) {
			c.out = append(c.out, batch.Label{Name: l.Name, Value: l.Value})
		}
	})
	if len(c.out) == 0 && !r.public {
		return nil
	}
	same := 0
	for n, v := range s.Labels() {
		if same == len(c.out) || c.out[same] != (batch.Label{Name: n, Value: v}) {
			return s.Derive(c.out)
		}
		same++
	}
	if same < len(c.out) {
		return s.Derive(c.out)
	}
	return s
}
