package file

import "time"

// slot determines when the next turn of a follower is. Only the scheduler uses
// it.
type slot struct {
	state    turnState
	due      time.Time     // of the next turn, while it rests
	pause    time.Duration // the time between the end of a turn without lines and the next turn
	started  time.Time     // start of the last turn
	retarget *target       // the target to follow from the next turn on, or nil
	snapshot snapshot
}

// turnState is the state of a follower between turns.
type turnState uint8

const (
	resting turnState = iota // until it is due
	queued                   // waits for a worker
	running                  // a worker owns it, and nothing else may use it
)

func (s *slot) isRunning() bool { return s.state == running }

// isDue reports whether a resting follower has to be queued.
func (s *slot) isDue(now time.Time) bool { return s.state == resting && !s.due.After(now) }

// queue changes from resting to queued. It reports false in all other states.
func (s *slot) queue() bool {
	if s.state != resting {
		return false
	}
	s.state = queued
	return true
}

// start changes from queued to running.
func (s *slot) start(now time.Time) { s.state, s.started = running, now }

// postpone changes from queued to resting, because the turn may not run now.
func (s *slot) postpone(due time.Time) { s.state, s.due = resting, due }

// finish changes from running to resting. The outcome of the turn determines the
// pause, which doubles from one idle turn to the next.
func (s *slot) finish(out outcome, set *settings) {
	s.state = resting
	switch out {
	case more:
		s.pause = set.minPause
	case crowded:
		s.due = s.started
	case gone: // it is closed, or queued if its target was added again
	case refused:
		s.pause = set.minPause
		s.rest(set)
	default:
		s.rest(set)
	}
}

func (s *slot) rest(set *settings) {
	s.due = s.started.Add(s.pause)
	s.pause = min(2*s.pause, set.maxPause)
}

// snapshot is the state of a follower for the page and the metrics.
type snapshot struct {
	files []followerInfo
	stale bool // an update was due during a turn, and is made after it
}
