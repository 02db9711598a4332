package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// hanging is a log whose writing takes until it is let go.
type hanging struct {
	slog.Handler
	begun, goOn chan struct{}
}

func (h hanging) Handle(context.Context, slog.Record) error {
	h.begun <- struct{}{}
	<-h.goOn
	return nil
}

// TestLastHealth: a call that fails while another is still telling that all is
// well again leaves an unhealthy node.
func TestLastHealth(t *testing.T) {
	log := hanging{slog.NewTextHandler(io.Discard, nil), make(chan struct{}, 1), make(chan struct{})}
	var last component.Health
	r := newReporter(component.Options{
		Logger: slog.New(log),
		Clock:  clocktest.New(time.Unix(0, 0)),
		Health: func(h component.Health) { last = h },
	}, "a/b.lua", nil)
	boom := &scripting.Error{Err: errors.New("boom")}
	r.done(1, boom)
	told := make(chan struct{})
	go func() {
		r.done(1, nil)
		close(told)
	}()
	<-log.begun
	r.done(1, boom)
	close(log.goOn)
	<-told
	if last.State != component.Unhealthy {
		t.Errorf("got %+v", last)
	}
}
