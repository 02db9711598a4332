// Package usage measures how much CPU time each node uses, while somebody looks.
//
// It takes one CPU profile of the process after another, and attributes each sample to
// the node in the label of its goroutine; see flow.Labelled and flow.Meter. Nothing is
// measured and nothing costs time when no client is there.
//
// A sample is taken for every 10 ms of CPU time, so the time of one node in an interval
// of a second is exact to about 10 ms.
package usage

import (
	"bytes"
	"fmt"
	"maps"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/weir-run/weir/engine/flow"
)

// minWindow is the shortest profile. Clients that ask more often get the previous
// result.
const minWindow = 250 * time.Millisecond

// CPU measures the CPU time of nodes. The zero value is ready to use. All methods are
// safe for concurrent use.
type CPU struct {
	mu      sync.Mutex
	clients int
	running bool      // a profile is being taken
	paused  int       // callers of Pause
	began   time.Time // of the profile
	last    time.Time // until when times has the CPU time
	body    bytes.Buffer
	times   map[string]time.Duration // by node; "" is the rest of the process
	err     error                    // why no profile is being taken
}

// Start begins to measure. The caller calls Stop at the end.
func (c *CPU) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients++; c.clients == 1 {
		c.times, c.last = map[string]time.Duration{}, time.Now()
		c.profile()
	}
}

// Stop ends the measurement if there was no other Start.
func (c *CPU) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients--; c.clients == 0 {
		c.end()
	}
}

// Pause ends the profile, so that another CPU profile can be taken, until resume is
// called.
func (c *CPU) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	c.end()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.clients > 0 {
			c.profile()
		}
	}
}

// Read returns the CPU time since Start by node; "" is the time of the rest of the
// process, such as garbage collection. The error means that the time since the last
// Read is not included, because another CPU profile is being taken.
func (c *CPU) Read() (map[string]time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients > 0 && (!c.running || time.Since(c.began) >= minWindow) {
		c.end()
		c.profile()
	}
	return maps.Clone(c.times), c.err
}

// profile begins a profile, unless one runs.
func (c *CPU) profile() {
	if c.running {
		return
	}
	c.body.Reset()
	if c.paused > 0 {
		c.err = fmt.Errorf("another CPU profile is being taken")
		return
	}
	if err := pprof.StartCPUProfile(&c.body); err != nil {
		c.err = fmt.Errorf("another CPU profile is being taken: %w", err)
		return
	}
	c.running, c.err, c.began = true, nil, time.Now()
}

// end ends the profile, if one runs, and adds its times.
func (c *CPU) end() {
	if !c.running {
		c.last = time.Now() // the time without a profile is unknown
		return
	}
	profiled := time.Since(c.began)
	pprof.StopCPUProfile() // takes up to 0.2 s
	c.running = false
	p, err := profile.Parse(&c.body)
	if err != nil {
		c.err = fmt.Errorf("cannot read the CPU profile: %w", err)
		return
	}
	c.add(p, profiled)
}

// add adds the samples of a profile. The time between two profiles counts like the time
// of the later one.
func (c *CPU) add(p *profile.Profile, profiled time.Duration) {
	now := c.began.Add(profiled)
	scale := 1.0
	if profiled > 0 {
		scale = float64(now.Sub(c.last)) / float64(profiled)
	}
	c.last = now
	for _, s := range p.Sample {
		node := ""
		if ids := s.Label[flow.NodeLabel]; len(ids) > 0 {
			node = ids[0]
		}
		c.times[node] += time.Duration(float64(s.Value[1]) * scale)
	}
}
