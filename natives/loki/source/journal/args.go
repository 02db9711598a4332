package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
)

// Arguments of loki.source.journal.
type Arguments struct {
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Whether a line contains all fields of the entry as a JSON object, instead of
	// its MESSAGE only.
	FormatAsJSON bool `alloy:"format_as_json,attr,optional"`
	// Maximum age of entries when weir starts; older entries are skipped, even after the
	// stored position.
	MaxAge time.Duration `alloy:"max_age,attr,optional"`
	// Directory with journal files, such as "/var/log/journal" or "/run/log/journal".
	// Subdirectories named after a machine ID are read too. The directory may be created
	// later. "" reads the journals of this machine in both directories.
	Path string `alloy:"path,attr,optional"`
	// Fields that an entry must have, separated by spaces, such as
	// "_SYSTEMD_UNIT=ssh.service PRIORITY=3". Values of the same field are
	// alternatives; different fields must all match.
	Matches string `alloy:"matches,attr,optional"`
	// Labels of all lines. The label job is always the component's ID.
	Labels map[string]string `alloy:"labels,attr,optional"`
	// Rules that set labels from the fields of an entry, which are available as labels
	// such as __journal__systemd_unit: the `rules` export of a loki.relabel or
	// prometheus.relabel.
	RelabelRules rule.Rules `alloy:"relabel_rules,attr,optional"`
	// Position of Promtail to start from if this component has no position yet.
	Legacy *Legacy `alloy:"legacy_position,block,optional"`
}

// Legacy identifies a position that Promtail stored.
type Legacy struct {
	// Promtail's positions file.
	File string `alloy:"file,attr"`
	// Name of the job in the positions file.
	Name string `alloy:"name,attr"`
}

// SetToDefault sets Alloy's defaults.
func (a *Arguments) SetToDefault() { *a = Arguments{MaxAge: 7 * time.Hour} }

// Validate returns all errors in the arguments, joined.
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
