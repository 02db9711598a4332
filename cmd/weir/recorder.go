package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// recordingOptions are the options for tests of recordings. dir is the folder of scripts.
func recordingOptions(dir string) scripttest.Options {
	return scripttest.Options{Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: dir}
}

// recordingOf returns the recording of a node, without calls. where selects records, and
// mask are labels whose values are replaced.
func recordingOf(n statusNode, where string, mask []string) (r scripttest.Recording, err error) {
	if len(n.Sources) == 0 {
		return r, fmt.Errorf("cannot record %s: it does not run a script", n.ID)
	}
	if n.Omitted > 0 {
		return r, fmt.Errorf("cannot record %s: a list in its arguments or exports is too long", n.ID)
	}
	r = scripttest.Recording{Node: n.ID, Component: n.Name, Where: where, Mask: mask}
	if err := json.Unmarshal(n.Arguments, &r.Args); err != nil {
		return r, fmt.Errorf("cannot read the arguments of %s: %w", n.ID, err)
	}
	return r, nil
}

// recorder records the calls of a node of a running weir.
type recorder struct {
	get   getter
	note  func(kind, text string) // called with what weir reports about the recording
	calls int                     // that are recorded
}

// record adds at least one call to a recording. It ends when there are enough calls or
// ctx ends.
func (c recorder) record(ctx context.Context, r *scripttest.Recording) error {
	err := c.read(ctx, r)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if len(r.Calls) == 0 {
		return fmt.Errorf("cannot write a test: no call of %s was recorded", r.Node)
	}
	return nil
}

func (c recorder) read(ctx context.Context, r *scripttest.Recording) error {
	q := url.Values{"side": {"diff"}, "format": {tap.FormatCalls}, "limit": {strconv.Itoa(c.calls)}}
	if r.Where != "" {
		q.Set("where", r.Where)
	}
	u := url.URL{Path: "/api/v0/tap/" + r.Node, RawQuery: q.Encode()}
	answer, err := c.get(ctx, u.String())
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := bufio.NewReader(answer)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return errors.New("the recording ended because the connection to weir was closed")
		}
		if err != nil {
			return fmt.Errorf("cannot read the calls: %w", err)
		}
		if ended, err := c.add(r, line); err != nil || ended {
			return err
		}
	}
}

// add adds a line of the tap to the recording, and reports whether it is the last one.
func (c recorder) add(r *scripttest.Recording, line []byte) (ended bool, err error) {
	read := func(v any) error {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(v); err != nil {
			return fmt.Errorf("cannot read the calls: %w", err)
		}
		return nil
	}
	var note struct{ Kind, Text string }
	if err := read(&note); err != nil {
		return false, err
	}
	switch note.Kind {
	case "begin":
		var b tap.Beginning
		err = read(&b)
		r.State = b.State
	case "answer":
		var a tap.Answered
		err = read(&a)
		r.Answers = append(r.Answers, a.Answer)
	case "call":
		var one tap.Call
		err = read(&one)
		r.Calls = append(r.Calls, scripttest.RecordedCall{Began: one.Began, Ended: one.Ended, In: one.In, Out: one.Out, Partial: one.Partial, Outside: one.Outside})
	case "error":
		return false, fmt.Errorf("the recording ended: %s", config.Printable(note.Text))
	case "end":
		return true, nil
	default:
		c.note(note.Kind, config.Printable(note.Text))
	}
	return false, err
}
