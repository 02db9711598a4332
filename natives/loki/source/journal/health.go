package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// report reports the health if it has changed. err is the reason why nothing can
// be read at the moment.
func (c *Component) report(r *journalfile.Reader, err error) {
	h := component.Health{State: component.Healthy, Message: "following the journal"}
	if msg := c.problem(r, err); msg != "" {
		h = component.Health{State: component.Unhealthy, Message: msg}
	}
	if h.Message == c.reported {
		return
	}
	if h.State == component.Unhealthy {
		c.o.Logger.Warn("cannot read all of the journal", "err", h.Message)
	} else if c.reported != "" {
		c.o.Logger.Info("the journal can be read again")
	}
	c.reported = h.Message
	h.Time = c.o.Clock.Now()
	c.o.Health(h)
}

// problem returns the reason why entries cannot be read and how to fix it, or "".
func (c *Component) problem(r *journalfile.Reader, err error) string {
	if err != nil {
		return fmt.Sprintf("%v; trying again", err)
	}
	ps := r.Problems()
	for _, p := range ps {
		if errors.Is(p.Err, fs.ErrPermission) {
			return fmt.Sprintf("cannot read %s%s: %v: add the user that runs weir to the group systemd-journal (usermod -aG systemd-journal USER) and restart weir", p.Path, others(len(ps)), reason(p.Err))
		}
	}
	if len(ps) > 0 && !errors.Is(ps[0].Err, fs.ErrNotExist) {
		return fmt.Sprintf("cannot read %s%s: %v", ps[0].Path, others(len(ps)), reason(ps[0].Err))
	}
	if !r.Found() {
		var dirs []string
		for _, root := range roots(c.args.Path) {
			dirs = append(dirs, strings.TrimSuffix(root.Path+"/"+root.Machine, "/"))
		}
		msg := fmt.Sprintf("there are no journal files in %s yet: is systemd-journald running?", strings.Join(dirs, " or "))
		if c.args.Path == "" {
			msg += " In a container, mount the host's /var/log/journal and /run/log/journal, and set path to the one that has the journal or mount /etc/machine-id as well"
		}
		return msg
	}
	return ""
}

func others(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d other files or directories", n-1)
}

// reason returns an error without the path, which the caller adds.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// count counts and logs data that could not be read.
func (c *Component) count(ls []journalfile.Loss) {
	for _, l := range ls {
		c.o.Stats.DropLines(l.Reason, int(min(l.Entries, 1<<40)))
		if l.Reason == journalfile.LossDamaged && c.damaged[l.Path] {
			continue // log each file once
		}
		if l.Reason == journalfile.LossDamaged {
			if len(c.damaged) > maxDamaged {
				clear(c.damaged)
			}
			c.damaged[l.Path] = true
		}
		c.o.Logger.Warn("part of the journal cannot be read", "reason", l.Reason, "path", l.Path, "entries", l.Entries, "err", l.Detail)
	}
}

// maxDamaged is the maximum number of paths that are remembered.
const maxDamaged = 1000
