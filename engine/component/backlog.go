package component

import "time"

// Queuer is a Component that keeps some of what it accepted. What its flow.Stats
// count as out is what was sent, and not what was put aside to be sent later.
type Queuer interface {
	// Backlog returns what the component keeps now, and brings Options.Stats up
	// to date. It is called from any goroutine and must not block.
	Backlog() Backlog
}

// Holder is a Component that takes data from senders that will not send it again,
// and has it in memory until it is accepted further down.
type Holder interface {
	// Unaccepted returns how many samples and lines it has in memory now. It is
	// called from any goroutine and must not block.
	Unaccepted() (samples, lines int)
}

// Backlog is what a component has accepted and neither sent nor dropped. It may
// be from before the process was started.
type Backlog struct {
	// Journal says that the component sends out of a journal.
	Journal bool
	// Samples and Lines wait in the journal, once for each endpoint.
	Samples, Lines int64
	// Patience is how long the component waits on purpose, by its arguments, before
	// it sends what waits.
	Patience time.Duration
	// Queues are what it consists of, if that can wait for one of several receivers
	// while the others take what is theirs: one for each endpoint.
	Queues []Queue
	// Quarantined is how many samples and lines are in quarantine.
	Quarantined int64
}

// Queue is one of several queues of a component.
type Queue struct {
	// Name tells the queues of a component apart, for people: "endpoint a".
	Name string
	// Waiting is how many samples and lines wait, and Left how many have left it in
	// any way.
	Waiting int64
	Left    uint64
}
