//go:build integration

package integration

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// everyWay contains all kinds of rotation.
var everyWay = []logfiles.Rotation{logfiles.Rename, logfiles.CopyTruncate, logfiles.Recreate}

// TestLogRotations rotates files in all ways in turn while they are read: with
// lines that are written to the old file after it was renamed, with lines that
// are completed later, and several times between two polls. Every line arrives in
// a real Loki, exactly once and in order.
func TestLogRotations(t *testing.T) {
	t.Parallel()
	const rounds, perRound = 12, 700
	l := startLines(t, logfiles.Options{Files: 6, Seed: 1})
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(loki.endpoint()))
	l.add(perRound)
	weir := startWeir(t, dir)
	l.taken(weir)
	for round := range rounds {
		for file := range l.files {
			how := everyWay[(round+file)%len(everyWay)]
			if err := l.Write(file, perRound); err != nil {
				t.Fatal(err)
			}
			if how != logfiles.Rename {
				// A file that is removed before anything has opened it is lost.
				l.taken(weir)
			}
			for range 1 + file%3 { // several times if files are not removed
				l.rotate(file, how, 30)
				if how != logfiles.Rename {
					break
				}
				if err := l.Write(file, 3); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.WriteTorn(file, 5, func() {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.whole(loki, `{job="load"}`)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogRotationsUnderLoad does the same without waiting: the files are written
// continuously and rotated by renaming and copying. Lines that were not read from
// the original are read from the copy.
func TestLogRotationsUnderLoad(t *testing.T) {
	l := startLines(t, logfiles.Options{Files: 6, JSON: true, Seed: 2})
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(loki.endpoint()))
	weir := startWeir(t, dir)
	l.flow(50) // 6,000 lines per second
	for round := range 15 {
		eventually(t, "more is written", func() error { return l.atLeast((round + 1) * 4000) })
		for file := range l.files {
			how := logfiles.Rename
			if file%2 == 1 {
				how = logfiles.CopyTruncate
			}
			l.rotate(file, how, 40)
		}
		// If content is replaced before it is read, its copy cannot be
		// recognised.
		from := l.written()
		eventually(t, "each has new lines", func() error { return l.atLeast(from + 2*50*l.files) })
		l.taken(weir)
	}
	l.pause()
	l.whole(loki, `{job="load"}`)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogRotationsWithoutNewFile simulates logrotate with nocreate: services
// write to the renamed or deleted file for two seconds before they create the new
// one. Meanwhile, no file matches the pattern.
func TestLogRotationsWithoutNewFile(t *testing.T) {
	t.Parallel()
	const perTick = 5
	l := startLines(t, logfiles.Options{Files: 6, Seed: 4})
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(loki.endpoint()))
	l.add(100)
	weir := startWeir(t, dir)
	l.taken(weir)
	l.flow(perTick) // 20 times per second
	more := func(ticks int) {
		from := l.written()
		eventually(t, "more is written", func() error { return l.atLeast(from + ticks*perTick*l.files) })
	}
	for round := range 3 {
		for file := range l.files {
			how := logfiles.Rename
			if (round+file)%2 == 1 {
				how = logfiles.Recreate
			}
			if err := l.Detach(file, how); err != nil {
				t.Fatal(err)
			}
		}
		more(40)
		for file := range l.files {
			if err := l.Reopen(file); err != nil {
				t.Fatal(err)
			}
		}
		more(20)
		l.taken(weir) // weir must have opened all new files: a file that is deleted before is lost
	}
	l.pause()
	l.whole(loki, `{job="load"}`)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogRotationsWhileDown stops weir, rotates the files several times and
// starts it again: it reads the old files to the end before the new ones. The
// lines of a truncated file are in its copy.
func TestLogRotationsWhileDown(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 4, Seed: 3})
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(loki.endpoint()))
	l.add(100)
	weir := startWeir(t, dir)
	for round := range 4 {
		// A copy can only be recognised if some of the original was read.
		loki.arrive(t, `{job="load"}`, l.written())
		l.add(500)
		if round%2 == 0 {
			loki.arrive(t, `{job="load"}`, l.written())
			if code := weir.stop(); code != 0 {
				t.Errorf("exit status %d after SIGTERM", code)
			}
		} else {
			weir.kill()
		}
		for file := range l.files {
			for n := range round + file {
				how := logfiles.Rename
				if file == 3 && n == 0 {
					how = logfiles.CopyTruncate
				}
				if err := l.Write(file, 100); err != nil {
					t.Fatal(err)
				}
				l.rotate(file, how, 20)
			}
		}
		l.add(300)
		weir = startWeir(t, dir)
	}
	l.whole(loki, `{job="load"}`)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
