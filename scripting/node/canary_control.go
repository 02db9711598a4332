package node

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// serveCanary follows the decision of a user about a canary.
func (c *Component) serveCanary(w http.ResponseWriter, r *http.Request) {
	d := decision{followed: make(chan struct{})}
	did := "rolled back"
	switch r.PathValue("decision") {
	case "promote":
		d.promote, did = true, "promoted"
	case "rollback":
	default:
		http.NotFound(w, r)
		return
	}
	cn := c.canary.Load()
	if cn == nil || cn.promoted.Load() {
		http.Error(w, fmt.Sprintf("there is no canary of %s", c.opts.ID), http.StatusConflict)
		return
	}
	select {
	case cn.decisions <- d:
		<-d.followed
		fmt.Fprintf(w, "%s version %s of %s\n", did, component.ShortVersion(cn.inner.script.Version), c.opts.ID)
	case <-cn.inner.admission.replaced:
		http.Error(w, fmt.Sprintf("the canary of %s has just ended", c.opts.ID), http.StatusConflict)
	case <-r.Context().Done():
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
