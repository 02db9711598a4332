package component

import "time"

// Queuer is a Component that keeps part of the data that it accepted. Its
// flow.Stats count data as out when it is sent, not when it is stored to be
// sent later.
type Queuer interface {
	// Backlog returns the data that the component keeps now, and updates
	// Options.Stats. It is called from any goroutine and must not block.
	Backlog() Backlog
}

// Holder is a Component that takes data from senders that will not send it
// again, and keeps it in memory until the next node accepts it.
type Holder interface {
	// Unaccepted returns the number of samples and lines that it has in memory
	// now. It is called from any goroutine and must not block.
	Unaccepted() (samples, lines int)
}

// Backlog is the data that a component has accepted but neither sent nor
// dropped. Some of it may have been accepted by an earlier process.
type Backlog struct {
	// Journal reports whether the component sends from a journal.
	Journal bool
	// Samples and Lines wait in the journal. They are counted once per endpoint.
	Samples, Lines int64
	// Oldest is when the oldest of these data was stored; zero if there are none.
	Oldest time.Time
	// Patience is how long the arguments tell the component to wait before it
	// sends the data.
	Patience time.Duration
	// Queues has one element per endpoint if one endpoint can wait while the other
	// endpoints receive their data.
	Queues []Queue
	// Quarantined is the number of samples and lines in quarantine.
	Quarantined int64
}

// Queue is one of several queues of a component.
type Queue struct {
	// Name identifies the queue for people, such as "endpoint a".
	Name string
	// Waiting is the number of samples and lines that wait. Left is the number
	// that have left the queue in any way.
	Waiting int64
	Left    uint64
	// Oldest is when the oldest of the waiting data was stored; zero if none wait.
	Oldest time.Time
}
