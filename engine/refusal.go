package engine

import (
	"fmt"

	"github.com/weir-run/weir/engine/component"
)

// refusedError is why a node does not run the version that its catalog has, or
// runs it although a step refused it.
type refusedError struct {
	running string // the version that runs; "" if none does
	version string // the version that was refused; "" if its files cannot be read
	step    string // such as component.StepTest
	note    string // ends the clause about the version that runs
	err     error
}

// newRefused returns the refusal of a version, which a node would run in the place of
// the version that it runs.
func newRefused(running *node, version, step string, err error) *refusedError {
	r := &refusedError{version: version, step: step, err: err}
	if running != nil && running.current != nil {
		r.running = running.current.reg.Version
	}
	return r
}

// refuse returns err as the refusal of a version, or err itself if a component
// has no version, as natives.
func refuse(running *node, version, step string, err error) error {
	if runs := running != nil && running.current != nil; runs && running.current.reg.Version == "" || !runs && version == "" {
		return err
	}
	return newRefused(running, version, step, err)
}

// Error returns the message that the log, the health of the node, the API and the page
// show.
func (r *refusedError) Error() string {
	version := component.ShortVersion(r.version)
	switch r.running {
	case "":
		if version == "" {
			return fmt.Sprintf("no version is running; %v", r.err)
		}
		return fmt.Sprintf("no version is running; %s refused by %s: %v", version, r.step, r.err)
	case r.version:
		return fmt.Sprintf("running version %s although it was refused by %s%s: %v", version, r.step, r.note, r.err)
	}
	if version == "" {
		return fmt.Sprintf("running version %s%s; %v", component.ShortVersion(r.running), r.note, r.err)
	}
	return fmt.Sprintf("running version %s%s; %s refused by %s: %v", component.ShortVersion(r.running), r.note, version, r.step, r.err)
}

func (r *refusedError) Unwrap() error { return r.err }
