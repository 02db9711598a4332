package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/journal"
)

// found describes the journal of a dead process.
type found struct {
	blocks, samples int
	arrived         int // number of these blocks that had arrived
}

func (f found) String() string {
	return fmt.Sprintf("%d blocks (%d samples) in the journal, %d of them had arrived", f.blocks, f.samples, f.arrived)
}

// answerSlack is how long before the cursor was saved the sink may have answered
// a block after the cursor, because weir must receive the answer first.
const answerSlack = 5 * time.Second

// inspectDead reads the journal of a dead process, all of whose samples must
// arrive. loaded is true if the last requested scrapes may be lost.
func (r *run) inspectDead(loaded bool) (f found, err error) {
	if loaded {
		r.deaths = append(r.deaths, r.targets.Stats().Scrapes)
	}
	err = r.pending(func(rep *journal.Report, b journal.Block) error {
		n, arrived, err := r.sink.Owe(b.Payload, b.Kind != 1)
		if err != nil {
			return err
		}
		if n != b.Samples {
			r.addFailure("block %d says that it has %d samples, and has %d", b.Seq, b.Samples, n)
		}
		f.blocks++
		f.samples += n
		if !arrived.Known {
			return nil
		}
		f.arrived++
		if early := rep.CursorSaved.Sub(arrived.Answered); !arrived.Answered.IsZero() && early > answerSlack {
			r.addFailure("block %d was taken by the endpoint %s before the cursor was saved, and is to be sent again", b.Seq, early)
		}
		return nil
	})
	r.repeated += f.arrived
	return f, err
}

// pending calls f with every pending block in the journal of a dead process.
func (r *run) pending(f func(*journal.Report, journal.Block) error) error {
	dirs, err := journal.Find(r.data())
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		rep, err := journal.Inspect(dir, nil)
		if err != nil {
			return err
		}
		if _, err := journal.Inspect(dir, func(b journal.Block) error { return f(&rep, b) }); err != nil {
			return err
		}
	}
	return nil
}

// damage describes the damage that was done to the journal.
type damage struct {
	blocks  int // number of damaged blocks
	samples int // number of samples in those with an intact header
	headers int // number of blocks with a damaged header
}

// flip flips a bit in some of the pending blocks, at least in the oldest and the
// newest segment. Their samples need not arrive.
func (r *run) flip() (d damage, err error) {
	type place struct {
		path    string
		off     int64 // offset of the payload
		payload []byte
		v2      bool
	}
	var all []place
	files := map[string][]byte{}
	dirs, err := journal.Find(r.data())
	if err != nil {
		return d, err
	}
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, "*.seg")) // sorted
		for _, name := range names {
			if files[name], err = os.ReadFile(name); err != nil {
				return d, err
			}
		}
		_, err := journal.Inspect(dir, func(b journal.Block) error {
			for _, name := range names {
				if i := bytes.Index(files[name], b.Payload); i >= 0 {
					all = append(all, place{name, int64(i), bytes.Clone(b.Payload), b.Kind != 1})
					return nil
				}
			}
			return fmt.Errorf("cannot find block %d", b.Seq)
		})
		if err != nil {
			return d, err
		}
	}
	if len(all) < 2 {
		return d, fmt.Errorf("only %d blocks are in the journal: cannot damage any and see the rest arrive", len(all))
	}
	// Never both of the last two: if their headers are damaged, weir cannot know
	// that there were two.
	chosen := map[int]bool{r.rng.IntN(max(1, len(all)-2)): true}
	chosen[slices.IndexFunc(all, func(p place) bool { return p.path == all[0].path })] = true
	chosen[len(all)-1] = true
	for i, p := range all {
		if !chosen[i] {
			continue
		}
		const header = 48
		n, err := r.sink.Forgive(p.payload, p.v2)
		if err != nil {
			return d, err
		}
		off, d2 := p.off+int64(r.rng.IntN(len(p.payload))), damage{blocks: 1, samples: n}
		if r.rng.IntN(2) == 0 {
			off, d2 = p.off-1-int64(r.rng.IntN(header)), damage{blocks: 1, headers: 1}
		}
		if err := flipBit(p.path, off, r.rng.IntN(8)); err != nil {
			return d, err
		}
		d.blocks, d.samples, d.headers = d.blocks+d2.blocks, d.samples+d2.samples, d.headers+d2.headers
	}
	r.damaged += d.blocks
	return d, nil
}

func flipBit(path string, off int64, bit int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	if err == nil {
		b[0] ^= 1 << bit
		_, err = f.WriteAt(b[:], off)
	}
	return errors.Join(err, f.Close())
}
