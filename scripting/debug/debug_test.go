package debug_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/debug"
	"github.com/weir-run/weir/scripting/debug/debugtest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
)

// counting is a script with a loop in lines 5 to 7, in each language.
var counting = map[string]string{
	"scripts/x.lua": `local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    local sum = 0
    for i = 1, 6 do
      sum = sum + i
    end
    return batch
  end,
}
`,
	"scripts/x.ts": `import { defineTransform } from "weir";
export default defineTransform({
  metrics(batch): any {
    let sum = 0;
    for (let i = 1; i <= 6; i++) {
      sum = sum + i;
    }
    return batch;
  },
});
`,
}

// eachLanguage runs a test with a client that debugs counting.
func eachLanguage(t *testing.T, test func(t *testing.T, c *debugtest.Client, path string)) {
	for name, text := range counting {
		t.Run(name, func(t *testing.T) {
			var l scripting.Language = js.New()
			if strings.HasSuffix(name, ".lua") {
				l = lua.New()
			}
			f := scripting.File{Name: name, Path: "/w/" + name, Text: text}
			test(t, debugtest.Run(t, l, f, "a 1\n"), f.Path)
		})
	}
}

func TestLogpoint(t *testing.T) {
	eachLanguage(t, func(t *testing.T, c *debugtest.Client, path string) {
		set := c.Start(path,
			dap.SourceBreakpoint{Line: 6, LogMessage: "i is {i}, {sum + i}, {i.x.y}", Condition: "i == 3"},
			dap.SourceBreakpoint{Line: 6, LogMessage: "second", HitCondition: "%3"},
		)
		if len(set) != 2 || !set[0].Verified || !set[1].Verified {
			t.Fatalf("got %+v", set)
		}
		got := c.Output("i is")
		if !strings.HasPrefix(got, "i is 3, 6, {") || !strings.HasSuffix(got, "}\n") {
			t.Errorf("got %s", got)
		}
		c.Output("second")
		c.Output("second")
		c.Output("done") // without a stop
	})
}

func TestHitCount(t *testing.T) {
	for _, test := range []struct{ condition, stops string }{
		{"2", "2 "}, {"== 2", "2 "}, {">4", "5 6 "}, {">=5", "5 6 "}, {"<2", "1 "}, {" <= 2 ", "1 2 "}, {"% 3", "3 6 "},
	} {
		eachLanguage(t, func(t *testing.T, c *debugtest.Client, path string) {
			c.Start(path, dap.SourceBreakpoint{Line: 6, HitCondition: test.condition}, dap.SourceBreakpoint{Line: 8})
			got := ""
			for {
				c.Stopped()
				if c.Stack()[0].Line == 8 {
					break
				}
				got += c.Evaluate(0, "i") + " "
				c.Step("continue")
			}
			if got != test.stops {
				t.Errorf("%q: stopped at %s, want %s", test.condition, got, test.stops)
			}
			c.Step("continue")
			c.Output("done")
		})
	}
	eachLanguage(t, func(t *testing.T, c *debugtest.Client, path string) {
		for i, b := range c.Start(path, dap.SourceBreakpoint{Line: 6, HitCondition: "often"}, dap.SourceBreakpoint{Line: 6, HitCondition: "%0"}) {
			if b.Verified || !strings.HasPrefix(b.Message, "cannot use the hit count ") {
				t.Errorf("breakpoint %d: got %+v", i, b)
			}
		}
		c.Output("done")
	})
}

// TestConditionError checks that a condition with an error stops once, with a message.
func TestConditionError(t *testing.T) {
	eachLanguage(t, func(t *testing.T, c *debugtest.Client, path string) {
		c.Start(path, dap.SourceBreakpoint{Line: 6, Condition: "i +"})
		c.Output("cannot evaluate the condition i +: ")
		c.Stopped()
		if got := c.Evaluate(0, "i"); got != "1" {
			t.Errorf("stopped when i is %s", got)
		}
		c.Step("continue")
		c.Output("done")
	})
}

func TestPause(t *testing.T) {
	eachLanguage(t, func(t *testing.T, c *debugtest.Client, path string) {
		c.Start(path, dap.SourceBreakpoint{Line: 6, Condition: "i == 2"})
		c.Stopped()
		// A running script stops at its next statement. Pause has no effect on one
		// that is stopped.
		debugtest.Do[*dap.PauseResponse](c, "pause", &dap.PauseRequest{Arguments: dap.PauseArguments{ThreadId: 1}})
		if got := c.Evaluate(0, "i"); got != "2" {
			t.Errorf("stopped when i is %s", got)
		}
		c.Step("continue")
		c.Output("done")
		if got := c.Evaluate(0, "i"); got != "error: the script is not stopped: it runs, or waits for a batch" {
			t.Errorf("got %s", got)
		}
	})
}

// TestAdapt checks which requests begin a session, and that their errors reach the
// client.
func TestAdapt(t *testing.T) {
	var got []debug.Target
	var body string
	adapt := func(requests ...dap.Message) string {
		t.Helper()
		var in, out bytes.Buffer
		for _, r := range requests {
			if err := dap.WriteProtocolMessage(&in, r); err != nil {
				t.Fatal(err)
			}
		}
		got = nil
		err := debug.Adapt(&in, &out, func(target debug.Target, r io.Reader) (io.ReadCloser, error) {
			got = append(got, target)
			if target.Node == "none" {
				return nil, errors.New("there is no node none")
			}
			answer, w := io.Pipe()
			go func() {
				text, err := io.ReadAll(r)
				body = string(text)
				for _, command := range []string{"initialize", "attach"} {
					_ = dap.WriteProtocolMessage(w, &dap.Response{ProtocolMessage: dap.ProtocolMessage{Type: "response"}, Command: command + " of the session"})
				}
				w.CloseWithError(err)
			}()
			return answer, nil
		})
		text := out.String()
		if err != nil {
			text += " error: " + err.Error()
		}
		return text
	}
	request := func(seq int, command string) dap.Request {
		return dap.Request{ProtocolMessage: dap.ProtocolMessage{Seq: seq, Type: "request"}, Command: command}
	}
	initialize := &dap.InitializeRequest{Request: request(1, "initialize")}
	attach := func(args string) dap.Message {
		return &dap.AttachRequest{Request: request(2, "attach"), Arguments: []byte(args)}
	}
	f := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("got %s\nwithout %s", text, w)
			}
		}
	}
	f(adapt(initialize, attach(`{"node": "a.b.c", "where": "value > 1", "storagePath": "/d", "name": "x"}`), &dap.ThreadsRequest{Request: request(3, "threads")}),
		`"supportsLogPoints":true`, `"command":"attach of the session"`)
	f(fmt.Sprint(got), "[{a.b.c value > 1 /d}]")
	f(body, `"command":"initialize"`, `"command":"attach"`, `"command":"threads"`)
	if text := adapt(initialize, &dap.LaunchRequest{Request: request(2, "launch"), Arguments: []byte(`{"node": "a.b.c"}`)}); strings.Contains(text, "initialize of the session") {
		t.Errorf("the client got two responses to initialize: %s", text)
	}

	f(adapt(initialize, attach(`{"node": "none"}`), attach(`{"node": "a.b.c"}`)), "there is no node none", "attach of the session")
	f(adapt(initialize, attach(`{}`)), `there is no attribute \"node\"`)
	f(adapt(initialize, attach(`{"node": 3}`)), "cannot read the attributes of the request")
	f(adapt(attach(`{"node": "a.b.c"}`)), "the first request must be initialize")
	f(adapt(initialize, &dap.ThreadsRequest{Request: request(2, "threads")}), "the request after initialize must be attach")
	f(adapt(initialize, &dap.DisconnectRequest{Request: request(2, "disconnect")}), `"command":"disconnect"`)
	var out bytes.Buffer
	if err := debug.Adapt(strings.NewReader("hello\r\n\r\n"), &out, nil); err == nil || !strings.HasPrefix(err.Error(), "cannot read a request of the debugger: ") {
		t.Errorf("got %v", err)
	}
}
