package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

// Arguments of loki.source.journal.
type Arguments struct {
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Whether a line is all fields of the entry as a JSON object, and not its
	// MESSAGE only.
	FormatAsJSON bool `alloy:"format_as_json,attr,optional"`
	// How old entries may be that are read, also when weir was down for longer.
	MaxAge time.Duration `alloy:"max_age,attr,optional"`
	// Directory of the journal; "" is the system's.
	Path string `alloy:"path,attr,optional"`
	// Fields that entries must have, such as "_SYSTEMD_UNIT=ssh.service", separated
	// by spaces: several of one field are alternatives, several fields must all be
	// there.
	Matches string `alloy:"matches,attr,optional"`
	// Labels of all lines, beside job, which is the component's ID.
	Labels map[string]string `alloy:"labels,attr,optional"`
	// Rules that make labels of an entry's fields, which are labels such as
	// __journal__systemd_unit and are dropped after the rules: the `rules` of a
	// loki.relabel or prometheus.relabel.
	RelabelRules rule.Rules `alloy:"relabel_rules,attr,optional"`
	// Where to begin when there is no position yet: that of Promtail.
	Legacy *Legacy `alloy:"legacy_position,block,optional"`
}

// Legacy is a position that Promtail kept.
type Legacy struct {
	// Promtail's positions file.
	File string `alloy:"file,attr"`
	// The job's name in it.
	Name string `alloy:"name,attr"`
}

// SetToDefault sets Alloy's defaults.
func (a *Arguments) SetToDefault() { *a = Arguments{MaxAge: 7 * time.Hour} }

// Validate returns all that is wrong with the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if a.MaxAge <= 0 {
		errs = append(errs, fmt.Errorf("max_age is %s, must be greater than 0", a.MaxAge))
	}
	for _, m := range strings.Fields(a.Matches) {
		if name, _, ok := strings.Cut(m, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf(`matches: %q must be FIELD=value, such as "_SYSTEMD_UNIT=ssh.service"`, m))
		}
	}
	for name := range a.Labels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			errs = append(errs, fmt.Errorf("labels: %q is not a valid label name", name))
		}
	}
	return errors.Join(errs...)
}
