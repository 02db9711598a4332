package telemetry

import "bytes"

// maxRecent is the maximum size of the log lines that are kept in memory, in bytes.
const maxRecent = 512 << 10

// recent keeps the last log lines.
type recent struct{ text []byte }

// add adds a line.
func (r *recent) add(line []byte) {
	if len(line) > maxRecent {
		return
	}
	if len(r.text)+len(line) > 2*maxRecent { // so that most lines are copied once
		keep := r.text[len(r.text)+len(line)-maxRecent:]
		keep = keep[bytes.IndexByte(keep, '\n')+1:]
		r.text = append(make([]byte, 0, 2*maxRecent), keep...)
	}
	r.text = append(r.text, line...)
}

// lines returns a copy of the last lines.
func (r *recent) lines() []byte {
	keep := r.text
	if len(keep) > maxRecent {
		keep = keep[len(keep)-maxRecent:]
		keep = keep[bytes.IndexByte(keep, '\n')+1:]
	}
	return bytes.Clone(keep)
}
