package remotewrite

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/outbox"
)

// HeaderFromLabel says which label of a series a header of its request has the
// value of. A request holds series of one value.
type HeaderFromLabel struct {
	// Name of the header.
	Header string `alloy:"header,attr,optional"`
	// Label with the value, after external_labels and write_relabel_config. Its
	// samples share a request with those of the same value only.
	Label string `alloy:"label,attr"`
	// Value for series without the label. Default: their requests are sent
	// without the header, or with the one in headers.
	Default string `alloy:"default,attr,optional"`
	// Whether the label stays with the series.
	Keep bool `alloy:"keep,attr,optional"`
	// Most values within ten minutes; samples of further ones are dropped and
	// counted.
	MaxValues int `alloy:"max_values,attr,optional"`
}

// SetToDefault sets the defaults.
func (h *HeaderFromLabel) SetToDefault() {
	*h = HeaderFromLabel{Header: "X-Scope-OrgID", MaxValues: 5000}
}

// Validate returns all that is wrong, joined.
func (h *HeaderFromLabel) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	canonical := http.CanonicalHeaderKey(h.Header)
	switch {
	case !outbox.ValidName(h.Header):
		add("header: %q is no name of a header", h.Header)
	case outbox.Reserved(h.Header, reservedHeaders...) || canonical == "Authorization" || canonical == "User-Agent":
		add("header: %q cannot be taken from a label", h.Header)
	}
	if !model.UTF8Validation.IsValidLabelName(h.Label) || h.Label == model.MetricNameLabel {
		add("label: %q is no label that can be taken away from a series", h.Label)
	}
	if h.Default != "" && !outbox.ValidValue(h.Default) {
		add("default: %q cannot be the value of a header", h.Default)
	}
	if h.MaxValues <= 0 {
		add("max_values must be greater than 0")
	}
	return errors.Join(errs...)
}

// split is a group's rows by the value of their header. They are encoded when
// the group is written, value after value, so that however many values there
// are, one block is open at a time. The rows' batches are kept by who waits for
// the group anyway.
type split struct {
	rows    int
	values  []string // in the order they came
	byValue map[string]*[]row
	refused map[string]string // values that are not sent, and why
}

// add returns the reason why a row is not sent, if it is not.
func (p *split) add(s *settings, value string, r row) (reason string) {
	rows := p.byValue[value]
	if rows == nil {
		if reason, ok := p.refused[value]; ok {
			return reason
		}
		if reason := s.values.admit(value, s.args.HeaderFromLabel.MaxValues); reason != "" {
			if p.refused == nil {
				p.refused = map[string]string{}
			}
			p.refused[value] = reason
			return reason
		}
		rows = new([]row)
		p.byValue[value] = rows
		p.values = append(p.values, value)
	}
	*rows = append(*rows, r)
	p.rows++
	return ""
}

// encode makes the blocks of gr. It returns how many rows could not be encoded.
func (p *split) encode(gr *group, own, shards int) (lost int) {
	for _, value := range p.values {
		// The shard is the value's: one source may have many of them, and no
		// shard could send all that one after the other. The journal keeps it, so
		// the hash has no seed of the process; who chooses values can fill one
		// shard with them, as with one value, and nothing is looked up by it.
		shard := own
		if value != "" {
			shard = int(xxhash.Sum64String(value) % uint64(shards))
		}
		rows := *p.byValue[value]
		for i := range rows {
			if err := gr.open.add(&rows[i]); err != nil {
				lost++
				continue
			}
			if gr.open.full() {
				gr.blocks = append(gr.blocks, gr.open.close(shard, value))
			}
		}
		if gr.open.samples > 0 {
			gr.blocks = append(gr.blocks, gr.open.close(shard, value))
		}
	}
	return lost
}

// valuesFor is how long a value counts after it was seen.
const valuesFor = 10 * time.Minute

// values knows the values of header_from_label that came lately.
type values struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[string]time.Time
}

// admit returns the reason why samples of a value are not sent, "" when they are.
func (v *values) admit(value string, most int) (reason string) {
	if value == "" {
		return ""
	}
	if !outbox.ValidValue(value) {
		return "header_invalid"
	}
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.at[value]; !ok && len(v.at) >= most {
		return "header_values"
	}
	v.at[value] = now
	return ""
}

// removeIdle forgets values that did not come for a while.
func (v *values) removeIdle() {
	old := v.now().Add(-valuesFor)
	v.mu.Lock()
	defer v.mu.Unlock()
	for value, at := range v.at {
		if at.Before(old) {
			delete(v.at, value)
		}
	}
}

func (v *values) len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.at)
}
