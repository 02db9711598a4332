//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestUIGraphLink: the URL holds the part of the graph that is shown, after it was moved with keys, the
// mouse or fingers, and a link shows the same part on another screen.
func TestUIGraphLink(t *testing.T) {
	_, b, _ := startUI(t)
	// The point in the middle and the scale, as the drawing has them.
	const place = `(() => {
		const svg = document.querySelector(".canvas > svg"), [x, y, w, h] = svg.getAttribute("viewBox").split(" ").map(Number);
		return [x + w / 2, y + h / 2, Math.min(svg.clientWidth / w, svg.clientHeight / h)];
	})()`
	const link = `(new URLSearchParams(location.hash.split("?")[1]).get("at") ?? "").split(",").map(Number)`
	same := func(what string) {
		t.Helper()
		b.await(what, `(() => { const p = `+place+`, l = `+link+`; return l.length == 3 && Math.abs(l[0] - p[0]) <= 1 && Math.abs(l[1] - p[1]) <= 1 && Math.abs(l[2] / p[2] - 1) < 0.01 })()`)
	}
	nodes := func() {
		t.Helper()
		b.await("the graph has nodes", `document.querySelector("g.box")`)
	}
	b.view("graph")
	nodes()
	b.await("the first view needs no parameter", `!location.hash.includes("at=")`)
	b.do(`document.querySelector(".canvas > svg").focus()`)
	b.run(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent("+"))
	same("the URL holds what the keys have chosen")
	b.do(`window.seen = ` + place + `; window.fragment = location.hash`)
	b.click("Fit")
	b.await("the whole graph needs no parameter", `!location.hash.includes("at=")`)

	// The link, in the same page, after a reload of the page, and on a narrower screen.
	const again = `(() => { const p = ` + place + `; return Math.abs(p[0] - seen[0]) <= 1 && Math.abs(p[1] - seen[1]) <= 1 && Math.abs(p[2] / seen[2] - 1) < 0.01 })()`
	b.do(`location.hash = window.fragment`)
	b.await("the link shows the same part", again)
	seen, err := ask(b, chromedp.Evaluate[[]float64](`window.seen`))
	if err != nil {
		t.Fatal(err)
	}
	b.resize(900, 700)
	b.run(chromedp.Reload())
	nodes()
	b.do(fmt.Sprintf(`window.seen = [%f, %f, %f]`, seen[0], seen[1], seen[2]))
	b.await("the link shows the same part after a reload of the page", again)
	b.screenshot("link")

	// The mouse drags and zooms at the pointer.
	mouse := func(kind input.DispatchMouseEventType, x, y, wheel float64, buttons int64) {
		t.Helper()
		b.run(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			p := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: buttons}
			if kind == input.DispatchMouseEventTypeMouseWheel {
				p.Button, p.DeltaX, p.DeltaY, p.Modifiers = input.MouseButtonNone, 1, wheel, 2 // Ctrl
			}
			_, err := cdp.Call(ctx, tab, input.DispatchMouseEvent, p)
			return err
		}))
	}
	origin, err := ask(b, chromedp.Evaluate[[]float64](`(() => { const r = document.querySelector(".canvas > svg").getBoundingClientRect(); return [r.x, r.y + 60] })()`))
	if err != nil {
		t.Fatal(err)
	}
	b.do(`window.seen = ` + place)
	mouse(input.DispatchMouseEventTypeMousePressed, origin[0]+20, origin[1], 0, 1)
	mouse(input.DispatchMouseEventTypeMouseMoved, origin[0]+120, origin[1], 0, 1)
	mouse(input.DispatchMouseEventTypeMouseReleased, origin[0]+120, origin[1], 0, 0)
	b.await("the mouse has moved the graph by 100 pixels", `(() => { const p = `+place+`; return Math.abs((seen[0] - p[0]) * p[2] - 100) < 2 && p[1] == seen[1] })()`)
	same("the URL holds what the mouse has chosen")
	b.do(`window.seen = ` + place)
	mouse(input.DispatchMouseEventTypeMouseWheel, origin[0]+20, origin[1], -100, 0)
	b.await("the wheel zooms", place+`[2] > seen[2] * 1.1`)
	same("the URL holds the zoom")

	// A link that shows nothing of the graph is the first view.
	for _, bad := range []string{"900000,0,1", "x", "1,2", "0,0,0", "0,0,99", "1e9,0,1", "NaN,NaN,NaN"} {
		b.view("graph?at=" + bad)
		b.await("the parameter goes away", `!location.hash.includes("at=")`)
		nodes()
	}

	// Two fingers zoom, also with one of them on a node, which they do not open.
	b.resize(400, 900)
	b.view("graph?filter=weir")
	nodes()
	touch := func(kind input.DispatchTouchEventType, points ...[2]float64) {
		t.Helper()
		b.run(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			p := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
			for i, at := range points {
				id := float64(i)
				p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: at[0], Y: at[1], ID: &id})
			}
			_, err := cdp.Call(ctx, tab, input.DispatchTouchEvent, p)
			return err
		}))
	}
	node, err := ask(b, chromedp.Evaluate[[]float64](`(() => {
		document.querySelector(".canvas").scrollIntoView();
		const r = [...document.querySelectorAll("g.box")].find(e => e.textContent.includes("my.tidy.default")).getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`))
	if err != nil {
		t.Fatal(err)
	}
	b.do(`window.seen = ` + place)
	x, y := node[0], node[1]
	touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x, y})
	touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x, y}, [2]float64{x, y + 60})
	touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x, y}, [2]float64{x, y + 90})
	touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x, y}, [2]float64{x, y + 120})
	b.await("the distance of the fingers has doubled", `Math.abs(`+place+`[2] / seen[2] - 2) < 0.05`)
	touch(input.DispatchTouchEventTypeTouchEnd)
	same("the URL holds what the fingers have chosen")
	b.await("the node was not opened", `!location.hash.includes("node=") && location.hash.includes("filter=weir")`)
	b.screenshot("pinch")
	touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x, y})
	touch(input.DispatchTouchEventTypeTouchEnd)
	b.await("a touch selects the node", `location.hash.includes("node=my.tidy.default")`)
}
