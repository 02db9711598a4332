package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Bare is the load that targets and sink can carry on their cores in the ceiling
// scenario.
type Bare struct {
	Rate   float64 // samples per second, end to end
	Pumped float64 // CPU seconds per second of the pump on its core
	Target float64 // of the targets
	Sink   float64 // of the sink
}

// Carry measures targets and sink without a collector between them: for the time
// d, a pump moves samples as fast as possible, on the one core that a collector
// would have.
func Carry(ctx context.Context, s Scenario, d time.Duration, dir string) (b Bare, err error) {
	s.Measure, s.Ceiling = d, true
	r := &round{s: s, dir: dir}
	if r.one, r.rest, err = split(); err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startEnds(); err != nil {
		return b, err
	}
	exe, err := os.Executable()
	if err != nil {
		return b, fmt.Errorf("cannot start the pump: %w", err)
	}
	cmd := exec.Command(exe, append([]string{"pump", "--write=" + r.sink.Write}, r.targets.Targets...)...)
	if r.program, err = startProcess("pump", cmd, dir, r.one); err != nil {
		return b, err
	}
	if err := r.wait(ctx, 2*time.Second); err != nil {
		return b, err
	}
	from, err := r.read(ctx)
	if err != nil {
		return b, err
	}
	if err := r.wait(ctx, d); err != nil {
		return b, err
	}
	to, err := r.read(ctx)
	if err != nil {
		return b, err
	}
	took := to.at.Sub(from.at).Seconds()
	return Bare{
		Rate:   float64(to.stats.Samples-from.stats.Samples) / took,
		Pumped: (to.program.CPU - from.program.CPU) / took,
		Target: (to.targets.CPU - from.targets.CPU) / took,
		Sink:   (to.sink.CPU - from.sink.CPU) / took,
	}, nil
}
