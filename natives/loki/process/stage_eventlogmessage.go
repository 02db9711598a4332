package process

import (
	"context"
	"strings"
)

// EventLogMessageArguments are the arguments of stage.eventlogmessage.
type EventLogMessageArguments struct {
	MessageArguments `alloy:",squash"`
}

// eventLogMessageStage reads messages of the Windows event log. Each line
// consists of a name, a colon and a value.
type eventLogMessageStage struct{ *named }

func (a *EventLogMessageArguments) compile(c *compiler) (stage, error) {
	return eventLogMessageStage{c.named(a.MessageArguments)}, nil
}

func (s eventLogMessageStage) run(_ context.Context, p *pass) {
	if s.idle {
		return
	}
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		for line := range strings.SplitSeq(in, "\r\n") {
			if name, v, ok := strings.Cut(line, ":"); ok {
				s.set(p, r, name, strings.TrimSpace(v))
			}
		}
	}
}
