//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a Chromium. The test fails if a page throws, or complains on the console.
type browser struct {
	t   testing.TB
	ctx context.Context

	mu      sync.Mutex
	allowed []string // parts of complaints that are expected
	shots   int
}

func startBrowser(t testing.TB) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no chromium to look at the page with")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1300, 900))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			d := ev.ExceptionDetails
			text := d.Text
			if d.Exception != nil && d.Exception.Description != "" {
				text += " " + d.Exception.Description
			}
			b.complain("exception: " + text)
		case *log.EventEntryAdded:
			if ev.Entry.Level == log.EntryLevelError {
				b.complain(fmt.Sprintf("%s: %s (%s)", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first action starts the browser, which ends with the context of the action: it has no deadline.
	// The page has the focus, whichever window the system gives it to.
	err = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// complaints allows complaints that contain a text.
func (b *browser) complaints(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.allowed {
		if strings.Contains(strings.ToLower(text), strings.ToLower(a)) {
			return
		}
	}
	b.t.Errorf("the page complains: %s", text)
}

// browserPatience is how long a browser may take for one action.
const browserPatience = time.Minute

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask returns the result of an action.
func ask[T any](b *browser, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// open opens a URL.
func (b *browser) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
}

// view opens a view of the web UI, such as node/prometheus.scrape.a?tab=live, in the present session.
func (b *browser) view(name string) {
	b.t.Helper()
	b.do(fmt.Sprintf("location.hash = %q", "#/"+name))
}

// do runs JavaScript.
func (b *browser) do(code string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](code))
}

// await waits until an expression in JavaScript is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	eventually(b.t, what, func() error {
		ok, err := ask(b, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s is false; the page shows:\n%s", expression, b.text())
		}
		return nil
	})
}

// shows waits until the page shows a text.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("the page shows %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// text returns the text that the page shows.
func (b *browser) text() string {
	text, _ := ask(b, chromedp.Evaluate[string]("document.body?.innerText ?? ''")) // for messages
	return text
}

// click clicks on the first button or link with a text.
func (b *browser) click(text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button, a, [role=button], summary')].find(e => e.textContent.trim() == %q)", text)
	b.await("there is a button "+text, find)
	b.do(find + ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))")
}

// replace replaces the text of the field that has the focus, as a user does.
func (b *browser) replace(text string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent("\b"), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// resize changes the size of the window.
func (b *browser) resize(width, height int64) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, height))
}

// narrow fails the test if a view is wider than the window.
func (b *browser) narrow(view string) {
	b.t.Helper()
	wide, err := ask(b, chromedp.Evaluate[string](`document.documentElement.scrollWidth <= innerWidth ? "" :
		[...document.querySelectorAll("body *")].find(e => e.getBoundingClientRect().right > innerWidth)?.outerHTML ?? "an element outside of body"`))
	if err != nil {
		b.t.Fatal(err)
	}
	if wide != "" {
		b.t.Errorf("%s is wider than the window: %.500s", view, wide)
	}
}

// screenshot keeps a picture of the page as an artefact of the test, in the folder SCREENSHOTS if
// the variable is set.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = b.t.ArtifactDir()
	}
	png, err := ask(b, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	b.shots++
	path := filepath.Join(dir, fmt.Sprintf("%s-%02d-%s.png", b.t.Name(), b.shots, name))
	if err := os.WriteFile(path, png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// accessible fails the test for each serious problem that axe-core finds in the page.
func (b *browser) accessible(view string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.FromSlash("../../../ui/node_modules/axe-core/axe.min.js"))
	if err != nil {
		b.t.Fatalf("cannot read axe-core; 'npm ci' in the folder ui installs it: %v", err)
	}
	b.do(string(axe))
	found, err := ask(b, chromedp.Evaluate[[]string](`axe.run({resultTypes: ["violations"]}).then(r => r.violations
		.filter(v => v.impact == "serious" || v.impact == "critical")
		.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html).join(" ; ")))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		b.t.Errorf("%s is not accessible: %s", view, f)
	}
}
