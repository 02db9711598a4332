// Package logfiles writes log files as services do, and numbers every line, so
// that missing, duplicate and reordered lines can be detected.
//
// Lines have about 200 bytes including their end, as JSON or as plain text, and
// their content is the same for the same seed. A sequence consists of the lines
// of one file and level, numbered from 1: a collector may split a file by level,
// but must keep the order within each sequence. The number is in the line as
// #00012i-0000000345 (file, first letter of the level, number) and survives all
// changes of the line that keep these bytes; see Find. Rotation is by rename,
// copytruncate or recreate, on request or by size.
package logfiles

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"time"
)

// Levels are the levels of lines, by the letter in the names of sequences. Of 20
// lines, 5 are debug, 12 info, 2 warn and 1 error.
var Levels = map[byte]string{'d': "debug", 'i': "info", 'w': "warn", 'e': "error"}

// levels is the order in which the levels repeat.
const levels = "idiidiwiidiidiiewidi"

var (
	methods  = []string{"GET", "GET", "GET", "POST", "PUT"}
	kinds    = []string{"orders", "customers", "carts", "invoices", "items", "payments", "sessions"}
	messages = []string{"request served", "request served from cache", "upstream answered", "order accepted"}
	statuses = []int{200, 200, 200, 200, 200, 201, 204, 302, 404, 500}
)

// MarkLen is the length of a line's mark: its sequence and number.
const MarkLen = len("#00012i-0000000345")

// content creates the lines of one file.
type content struct {
	file   int
	json   bool
	random *rand.Rand
	n      int            // number of lines so far
	counts map[byte]int64 // by level
	second string         // RFC 3339 to the second
	nano   int
}

func newContent(file int, json bool, seed uint64) *content {
	return &content{file: file, json: json, random: rand.New(rand.NewPCG(seed, uint64(file))), counts: map[byte]int64{}}
}

// setTime sets the time of the next lines.
func (c *content) setTime(now time.Time) {
	c.second, c.nano = now.UTC().Format("2006-01-02T15:04:05"), now.Nanosecond()
}

// append appends the next line with its end.
func (c *content) append(dst []byte) []byte {
	level := levels[c.n%len(levels)]
	c.n++
	c.counts[level]++
	c.nano = (c.nano + 1000) % 1e9
	r := c.random
	method, kind, message, status := pick(r, methods), pick(r, kinds), pick(r, messages), pick(r, statuses)
	if c.json {
		dst = append(c.time(append(dst, `{"ts":"`...)), `","level":"`...)
		dst = append(append(append(dst, Levels[level]...), `","msg":"`...), message...)
		dst = append(append(append(dst, `","method":"`...), method...), `","path":"/api/v1/`...)
		dst = strconv.AppendInt(append(append(dst, kind...), '/'), int64(r.IntN(100_000)), 10)
		dst = strconv.AppendInt(append(dst, `","status":`...), int64(status), 10)
		dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), int64(r.IntN(1000)), 10)
		dst = strconv.AppendInt(append(dst, `,"user":"u-`...), int64(r.IntN(10_000)), 10)
		dst = c.mark(append(dst, `","seq":"`...), level)
		return append(dst, "\"}\n"...)
	}
	dst = append(append(append(c.time(dst), ' '), Levels[level]...), " http: "...)
	dst = append(append(append(dst, message...), " method="...), method...)
	dst = strconv.AppendInt(append(append(append(dst, " path=/api/v1/"...), kind...), '/'), int64(r.IntN(100_000)), 10)
	dst = strconv.AppendInt(append(dst, " status="...), int64(status), 10)
	dst = append(strconv.AppendInt(append(dst, " duration="...), int64(r.IntN(1000)), 10), "ms user=u-"...)
	dst = append(strconv.AppendInt(dst, int64(r.IntN(10_000)), 10), " trace="...)
	dst = append(pad(pad(dst, r.Uint64N(1e16), 16), r.Uint64N(1e16), 16), " seq="...)
	return append(c.mark(dst, level), '\n')
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (c *content) time(dst []byte) []byte {
	return append(pad(append(append(dst, c.second...), '.'), uint64(c.nano), 9), 'Z')
}

func (c *content) mark(dst []byte, level byte) []byte {
	dst = append(pad(append(dst, '#'), uint64(c.file), 5), level, '-')
	return pad(dst, uint64(c.counts[level]), 10)
}

// pad appends n with leading zeros. n must have at most width digits.
func pad(dst []byte, n uint64, width int) []byte {
	at := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := at + width - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// Find returns the sequence of a line, such as 00012i, and its number. The name
// aliases line. ok is false if the line has no mark.
func Find(line []byte) (sequence []byte, number int, ok bool) {
	for {
		i := bytes.IndexByte(line, '#')
		if i < 0 || len(line)-i < MarkLen {
			return nil, 0, false
		}
		if n, ok := number10(line[i:]); ok {
			return line[i+1 : i+7], n, true
		}
		line = line[i+1:]
	}
}

// number10 parses the number of a mark.
func number10(mark []byte) (n int, ok bool) {
	if mark[7] != '-' || Levels[mark[6]] == "" {
		return 0, false
	}
	for _, d := range mark[1:6] {
		if d < '0' || d > '9' {
			return 0, false
		}
	}
	for _, d := range mark[8:MarkLen] {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}
