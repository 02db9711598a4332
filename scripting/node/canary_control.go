package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// serveCanary follows the decision of a user about a canary.
func (c *Component) serveCanary(w http.ResponseWriter, r *http.Request) {
	promote := r.PathValue("decision") == "promote"
	if !promote && r.PathValue("decision") != "rollback" {
		http.NotFound(w, r)
		return
	}
	did, err := c.endCanary(r.Context(), promote)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	fmt.Fprintln(w, did)
}

// errNoCanary is the error of a decision about a canary that does not run.
var errNoCanary = errors.New("there is no canary")

// endCanary ends the canary and returns what was done with its version.
func (c *Component) endCanary(ctx context.Context, promote bool) (did string, err error) {
	d := decision{promote: promote, followed: make(chan struct{})}
	did = "rolled back"
	if promote {
		did = "promoted"
	}
	cn := c.canary.Load()
	if cn == nil || cn.promoted.Load() {
		return "", fmt.Errorf("%w of %s", errNoCanary, c.opts.ID)
	}
	select {
	case cn.decisions <- d:
		<-d.followed
		return fmt.Sprintf("%s version %s of %s", did, component.ShortVersion(cn.inner.script.Version), c.opts.ID), nil
	case <-cn.inner.admission.replaced:
		return "", fmt.Errorf("the canary of %s has just ended", c.opts.ID)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// canaryInfo describes a canary.
type canaryInfo struct {
	Running string    `json:"running"` // version
	Version string    `json:"version"` // of the canary
	Share   float64   `json:"share"`
	By      string    `json:"by"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`

	MaxErrors       float64 `json:"max_errors"`
	MaxDropIncrease float64 `json:"max_drop_increase"`
	MaxSlowdown     float64 `json:"max_slowdown"`

	Promoted     bool    `json:"promoted,omitempty"` // the version is about to take over
	Stable       figures `json:"stable"`             // since that version began
	StableSeries int     `json:"stable_series"`      // in the output of the last batches
	Canary       figures `json:"canary"`
	CanarySeries int     `json:"canary_series"`
}

// String describes the canary for people, with a table of both versions.
func (i *canaryInfo) String() string {
	var b strings.Builder
	version := component.ShortVersion(i.Version)
	fmt.Fprintf(&b, "version %s processes %s of the series since %s UTC", version, percent(i.Share), i.Since.UTC().Format(time.DateTime))
	if i.Promoted {
		b.WriteString(" and is promoted\n")
	} else {
		fmt.Fprintf(&b, " and takes over at %s UTC unless a guard fails\n", i.Until.UTC().Format(time.DateTime))
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\trunning %s\tcanary %s\t\n", component.ShortVersion(i.Running), version)
	for _, row := range []struct {
		name            string
		running, canary int64
	}{
		{"calls", i.Stable.Calls, i.Canary.Calls},
		{"failed calls", i.Stable.Failed, i.Canary.Failed},
		{"records in", i.Stable.In, i.Canary.In},
		{"records sent", i.Stable.Out, i.Canary.Out},
		{"records dropped", i.Stable.Dropped, i.Canary.Dropped},
		{"ns per record", i.Stable.Nanos / max(i.Stable.In, 1), i.Canary.Nanos / max(i.Canary.In, 1)},
		{"output series", int64(i.StableSeries), int64(i.CanarySeries)},
	} {
		fmt.Fprintf(w, "%s\t%d\t%d\t\n", row.name, row.running, row.canary)
	}
	_ = w.Flush() // a Builder takes everything
	return strings.TrimSuffix(b.String(), "\n")
}

func (cn *canary) debug(c *Component) *canaryInfo {
	if cn == nil {
		return nil
	}
	return &canaryInfo{
		Running: c.script.Version, Version: cn.inner.script.Version,
		Share: cn.settings.Share, By: string(cn.settings.By), Since: cn.since, Until: cn.until,
		MaxErrors: cn.settings.MaxErrors, MaxDropIncrease: cn.settings.MaxDropIncrease, MaxSlowdown: cn.settings.MaxSlowdown,
		Promoted: cn.promoted.Load(),
		Stable:   c.counts.read(), StableSeries: cn.stableOutput.count(), Canary: cn.inner.counts.read(), CanarySeries: cn.output.count(),
	}
}
