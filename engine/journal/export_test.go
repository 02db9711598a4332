package journal

import (
	"io"
	"os"
)

// File lets tests inject faults.
type File = file

// WithFiles makes the journal open its files with open.
func (o Options) WithFiles(open func(path string, flag int) (File, error)) Options {
	o.open = open
	return o
}

// WithSyncDir makes the journal sync its directories with f.
func (o Options) WithSyncDir(f func(path string) error) Options {
	o.syncDir = f
	return o
}

// OpenOSFile opens files in the way that Options without WithFiles does.
func OpenOSFile(path string, flag int) (File, error) { return openOSFile(path, flag) }

// Maintain performs the work that Run does every second.
func (j *Journal) Maintain() { j.maintain() }

// Queued returns the number of calls of Append that wait for the next write.
func (j *Journal) Queued() int {
	j.queueMu.Lock()
	defer j.queueMu.Unlock()
	return len(j.queue)
}

// TryNext is like Next, but does not wait.
func (j *Journal) TryNext(shard int) (Block, bool) { return j.TryAfter(Block{Shard: shard}, nil) }

// Kill releases the files as the kernel does when a process dies.
func (j *Journal) Kill() { j.cursorFile.close(); j.lock.Close() }

// Found is a record that Scan found.
type Found struct {
	Seq     uint64
	Shard   int
	Payload []byte
}

// Scan returns the records in a segment file's content.
func Scan(r io.ReaderAt, size int64) (found []Found, skipped int64) {
	sc := scanner{r: r, end: size, off: segmentHeaderSize}
	if _, sound, _ := checkSegmentHeader(r); !sound {
		sc.off = 0
	}
	for {
		rec, off, ok := sc.next()
		skipped += sc.skipped
		if !ok {
			return found, skipped + sc.torn
		}
		b := make([]byte, rec.size)
		r.ReadAt(b, off+recordHeaderSize)
		found = append(found, Found{rec.seq, rec.shard, b})
	}
}

// AppendRecord appends a record in the format of a segment file.
func AppendRecord(dst []byte, seq uint64, shard int, payload []byte) []byte {
	return appendRecord(dst, seq, &Block{Shard: shard, Samples: 1, Payload: payload})
}

// SegmentStart is a segment's content up to its first record.
func SegmentStart(first uint64) []byte { return appendSegmentHeader(nil, first, 0) }

const (
	RecordHeaderSize  = recordHeaderSize
	SegmentHeaderSize = segmentHeaderSize
)

var _ file = (*os.File)(nil)

// CloseCursorFile makes the next write to the cursor file fail.
func (j *Journal) CloseCursorFile() { j.cursorFile.f.Close() }
