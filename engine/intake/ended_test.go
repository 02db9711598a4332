package intake

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
)

// Decoding a body ends when its client has gone and when weir stops.
func TestEnded(t *testing.T) {
	d := NewDesk[error]("weir_test", Signal[*batch.Logs]{}, clock.System{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx)
	if e := d.Ended(r); e != nil {
		t.Errorf("a request that goes on has ended: %+v", e)
	}
	cancel()
	if e := d.Ended(r); e == nil || e.Outcome != Gone || e.Status != 0 {
		t.Errorf("after the client has gone: %+v", e)
	}
	close(d.stopping)
	if e := d.Ended(httptest.NewRequest(http.MethodPost, "/", nil)); e == nil || e.Status != http.StatusServiceUnavailable || e.Retry == 0 {
		t.Errorf("when weir stops: %+v", e)
	}
}
