package http

import (
	"sync"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// maxAnswerBytes limits the answers that wait to be written.
const maxAnswerBytes = 4 << 20

// answers are the answers of external systems to a component that is recorded. It is
// safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	queue []component.Answer
	bytes int
}

// record begins to collect the answers to a component, and returns its state. A
// component that depends on its input only has none.
func (a *answers) record(host service.Host, id string) (state map[string]any, stop func(), err error) {
	c, _ := host.GetComponent(id)
	r, ok := c.(component.Recordable)
	if !ok {
		return nil, func() {}, nil
	}
	if stop, err = r.Record(a.add); err != nil {
		return nil, nil, err
	}
	if state, err = r.RecordedState(); err != nil {
		stop()
		return nil, nil, err
	}
	return state, stop, nil
}

func (a *answers) add(one component.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const overhead = 256
	size := overhead + len(one.Key) + len(one.Text) + len(one.Stderr)
	if a.bytes+size > maxAnswerBytes {
		one.Text, one.Stderr, one.Large, size = "", "", true, overhead+len(one.Key)
	}
	if a.bytes+size > 2*maxAnswerBytes {
		return
	}
	a.bytes += size
	a.queue = append(a.queue, one)
}

func (a *answers) take() (queue []component.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	queue = a.queue
	a.queue, a.bytes = nil, 0
	return queue
}
