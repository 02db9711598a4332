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

// Validate returns all errors in the block, joined.
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

// split contains the rows of a group by their header value. They are encoded
// value by value when the group is written, so that only one block is open at a
// time, however many values there are. The callers that wait for the group retain
// the batches of the rows in any case.
type split struct {
	rows    int
	values  []string // in the order of their first rows
	byValue map[string]*[]row
	refused map[string]string // values that are not sent, with the reason
}

// add adds a row. If the row is not sent, it returns the reason.
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

// encode creates the blocks of gr. It returns the number of rows that could not
// be encoded.
func (p *split) encode(gr *group, own, shards int) (lost int) {
	for _, value := range p.values {
		// The shard depends on the value: one source may have many values, and
		// one shard could not send all of them one after the other. The shard is
		// stored in the journal, so the hash has no random seed. A sender that
		// chooses values can direct them all to one shard, but it could also use
		// a single value; the hash is not used in a hash table.
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

// valuesFor is how long a value counts towards the limit after it was last seen.
const valuesFor = 10 * time.Minute

// values contains the recent values of header_from_label.
type values struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[string]time.Time
}

// admit returns the reason why samples with a value are not sent, or "" if they
// are sent.
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

// removeIdle removes values that have not been seen for valuesFor.
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
