package file

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// tellAfter is how long receivers must refuse the lines of a file before it is
// reported. Shorter refusals are not worth a report.
const tellAfter = 30 * time.Second

// status is the last reported state of the component.
type status struct {
	troubles     string    // problems with targets that the last resolution found
	reported     string    // the current problem, or ""
	refusedSince time.Time // when receivers began to refuse lines; zero until that was logged
}

// report updates the page, the metrics and the health. For a follower that a
// worker owns, it uses the state before the turn.
func (s *scheduler) report(now time.Time) {
	info := make([]followerInfo, 0, len(s.all)+len(s.ended))
	var files, rotated, unmet int
	var lag int64
	show := func(f *follower) {
		shown := &f.slot.snapshot
		if shown.stale = f.slot.isRunning(); !shown.stale {
			shown.files = f.describe()
		}
		for _, i := range shown.files {
			info = append(info, i)
			if i.File != "" && !i.Closed {
				files++
				if i.Rotated {
					rotated++
				}
			}
			if i.Size > i.Offset {
				lag += i.Size - i.Offset
			}
		}
		if len(shown.files) > 0 && shown.files[0].Error != "" {
			unmet++
		}
	}
	for _, f := range s.all {
		show(f)
	}
	for f := range s.ended {
		show(f)
	}
	slices.SortStableFunc(info, func(a, b followerInfo) int {
		return strings.Compare(a.Path+a.Labels, b.Path+b.Labels)
	})
	s.c.metrics.files.Set(float64(files))
	s.c.rotated.Store(int64(rotated))
	s.c.metrics.rotated.Set(float64(rotated))
	s.c.metrics.unmet.Set(float64(unmet))
	s.c.metrics.lag.Set(float64(lag))
	s.c.metrics.held.Set(float64(s.c.held.Load()))
	s.c.mu.Lock()
	s.c.info = info
	s.c.mu.Unlock()
	if troubles := s.describeTrouble(info, now); s.done.reported.IsZero() || troubles != s.status.reported {
		s.status.reported = troubles
		h := component.Health{State: component.Healthy, Message: "all files are followed", Time: now}
		if troubles != "" {
			h.State, h.Message = component.Unhealthy, troubles
		}
		s.c.opts.Health(h)
	}
}

// describeTrouble returns the problems in info, or "". For files that cannot be
// followed, it returns the first by name; for refused lines, since when and by
// which receiver. It logs when refusals begin or end.
func (s *scheduler) describeTrouble(info []followerInfo, now time.Time) string {
	troubles := s.status.troubles
	var longest followerInfo
	for _, i := range info {
		if troubles == "" {
			troubles = i.Error
		}
		if i.Refused && (!longest.Refused || i.RefusedSince.Before(longest.RefusedSince)) {
			longest = i
		}
	}
	switch log := s.c.opts.Logger; {
	case longest.Refused && now.Sub(longest.RefusedSince) >= tellAfter:
		if s.status.refusedSince.IsZero() {
			log.Warn("receivers refuse lines; their files are read on when they take them", "path", longest.Path, "err", longest.Refusal)
			s.status.refusedSince = longest.RefusedSince
		}
	case !s.status.refusedSince.IsZero():
		log.Info("receivers take lines again", "refused_for", now.Sub(s.status.refusedSince).Round(time.Second).String())
		s.status.refusedSince = time.Time{}
	}
	if s.status.refusedSince.IsZero() {
		return troubles
	}
	held := fmt.Sprintf("lines are refused since %s: %s", longest.RefusedSince.UTC().Format(time.RFC3339), longest.Refusal)
	if troubles != "" {
		held = troubles + "; " + held
	}
	return held
}

// describe returns the description of the follower for the page.
func (f *follower) describe() (infos []followerInfo) {
	base := followerInfo{Path: f.target.path, Labels: f.target.key, Error: f.trouble.text}
	if r := f.sender.refused; r != nil {
		base.Refused, base.RefusedSince, base.Refusal = true, r.since, r.why
	}
	if f.files.isEmpty() {
		return append(infos, base)
	}
	for _, lf := range f.files.all {
		i := base
		i.File, i.Offset, i.Size, i.Acked = lf.real, lf.cursor.offset, lf.seen.size, f.c.positions.acknowledged(lf.pos)
		if lf.isCompressed() && !lf.packed.isEnded() {
			i.Size = 0 // the size is unknown
		}
		i.Rotated, i.Closed = lf != f.files.current, lf.isParked()
		infos = append(infos, i)
	}
	return infos
}
