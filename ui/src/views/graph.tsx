// The running graph with live rates. Frames collapse; the URL holds filter, selection, collapsed frames,
// and the part of the graph that the user looks at.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Node, State } from "../api";
import { type Box, type Edge, type Layout, layout } from "../graph-layout";
import { fit, type Point, scaleOf, toGraph, useGestures, useWindow, type Window, zoomed } from "../graph-window";
import { Filter, matches } from "../parts/filter";
import { HealthBadge, symbols } from "../parts/health";
import { Loading, Pre } from "../parts/message";
import { nodeLink, type Route, setQuery } from "../route";
import { flowOf, type Shown, useStatus } from "../status";
import { count, plural, printable, rate } from "../text";

export function Graph({ route }: { route: Route }) {
  const shown = useStatus();
  if (!shown.status) return <Loading />;
  return <Chart shown={shown} nodes={shown.status.components} route={route} />;
}

function Chart({ shown, nodes, route }: { shown: Shown; nodes: Node[]; route: Route }) {
  const filter = route.query.get("filter") ?? "";
  const selected = route.query.get("node") ?? "";
  const collapsed = route.query.get("collapsed") ?? "";
  // Only a change of the structure needs another layout.
  const shape = JSON.stringify(nodes.map((n) => [n.id, n.sends_to, n.depends_on]));
  const narrow = useNarrow();
  const l = useMemo(
    () => layout(nodes, new Set(collapsed.split(",").filter(Boolean)), narrow),
    [shape, collapsed, narrow],
  );
  const byID = new Map(nodes.map((n) => [n.id, n]));
  const toggle = (frame: string) => {
    const now = new Set(collapsed.split(",").filter(Boolean));
    if (!now.delete(frame)) now.add(frame);
    setQuery({ collapsed: [...now].join(",") });
  };
  const node = byID.get(selected);
  const found = filter ? l.boxes.filter((b) => b.kind !== "frame" && matches(filter, b.nodes.join(" "))) : [];
  return (
    <>
      <div class="bar">
        <h1>Graph</h1>
        <form
          onSubmit={(e) => {
            e.preventDefault();
            const next = found[(found.findIndex((b) => b.id === selected) + 1) % found.length];
            if (next) setQuery({ node: next.id });
          }}
        >
          <Filter name="filter" value={filter} label="Search nodes" />{" "}
          {filter && (
            <button type="submit" disabled={found.length === 0}>
              Next
            </button>
          )}
        </form>
        <span class="soft">
          {filter
            ? `${count(found.length)} of ${plural(nodes.length, "node")}`
            : `${plural(nodes.length, "node")}. Drag or use the arrow keys to move; pinch or press + and − to zoom.`}
        </span>
      </div>
      <div class="graph">
        <Canvas
          l={l}
          shown={shown}
          byID={byID}
          filter={filter}
          selected={selected}
          at={route.query.get("at") ?? ""}
          toggle={toggle}
        />
        {node && <Selected n={node} shown={shown} />}
      </div>
    </>
  );
}

/** Whether the screen is too narrow for a graph from left to right. */
function useNarrow(): boolean {
  const query = useMemo(() => matchMedia("(max-width: 760px)"), []);
  const [narrow, set] = useState(query.matches);
  useEffect(() => {
    const change = () => set(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return narrow;
}

function Selected({ n, shown }: { n: Node; shown: Shown }) {
  const r = shown.rates.get(n.id);
  const f = flowOf(n);
  return (
    <aside class="box" aria-label="Selected node">
      <h2>
        <a href={nodeLink(n.id)}>{n.id}</a>
      </h2>
      <HealthBadge state={n.health.state} />
      {n.health.state !== "healthy" && <Pre>{printable(n.health.message)}</Pre>}
      <dl class="pairs">
        <dt>In</dt>
        <dd>{rate(r?.in)}</dd>
        <dt>Out</dt>
        <dd>{rate(r?.out)}</dd>
        <dt>Dropped</dt>
        <dd>{count(f.dropped)}</dd>
        {f.waiting !== undefined && (
          <>
            <dt>Waiting</dt>
            <dd>{count(f.waiting)}</dd>
          </>
        )}
      </dl>
      <p>
        <a href={nodeLink(n.id)}>Details</a>
        {n.samples && (
          <>
            {" "}
            · <a href={nodeLink(n.id, { tab: "live" })}>Live records</a>
          </>
        )}
      </p>
      <button type="button" onClick={() => setQuery({ node: "" })}>
        Close
      </button>
    </aside>
  );
}

function Canvas(props: {
  l: Layout;
  shown: Shown;
  byID: Map<string, Node>;
  filter: string;
  selected: string;
  /** The part of the graph that the URL names. */
  at: string;
  toggle: (frame: string) => void;
}) {
  const { l, shown, byID, filter, selected } = props;
  const svg = useRef<SVGSVGElement>(null);
  const { w, look } = useWindow(l, selected, props.at, svg);
  const move = (x: number, y: number) => {
    const now = w();
    look({ ...now, x: now.x + x * now.width, y: now.y + y * now.height });
  };
  const zoom = (factor: number, at?: Point) => svg.current && look(zoomed(w(), factor, l, svg.current, at));
  const gestures = useGestures(l, svg, w, look);
  // Preact skips elements that are the same as before, so an update costs what has changed.
  const kept = useRef(new Map<Box | Edge, { key: string; element: JSX.Element }>());
  useEffect(() => kept.current.clear(), [l]);
  const keep = (of: Box | Edge, key: string, make: () => JSX.Element) => {
    const old = kept.current.get(of);
    if (old?.key === key) return old.element;
    const element = make();
    kept.current.set(of, { key, element });
    return element;
  };
  const now = w();
  // Boxes outside of the window are not drawn, so that large graphs stay fast.
  const inside = (b: { x: number; y: number; width: number; height: number }) =>
    b.x < now.x + now.width && b.x + b.width > now.x && b.y < now.y + now.height && b.y + b.height > now.y;
  const scale = svg.current ? scaleOf(now, svg.current) : 1;
  return (
    <div class="canvas">
      <div class="tools">
        <button type="button" aria-label="Zoom in" onClick={() => zoom(0.8)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(1.25)}>
          −
        </button>
        <button type="button" onClick={() => look(fit(l, svg.current))}>
          Fit
        </button>
      </div>
      <svg
        ref={svg}
        role="group"
        aria-label="Graph of the nodes. The arrow keys move it, plus and minus zoom."
        tabindex={0}
        onKeyDown={(e) => {
          const step = keys[e.key];
          if (!step || e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey) return;
          e.preventDefault();
          if (typeof step === "number") zoom(step);
          else move(...step);
        }}
        viewBox={`${now.x} ${now.y} ${now.width} ${now.height}`}
        preserveAspectRatio="xMidYMid meet"
        onWheel={(e) => {
          if (!e.ctrlKey || !svg.current) return;
          e.preventDefault();
          zoom(e.deltaY > 0 ? 1.15 : 0.87, toGraph(w(), { x: e.clientX, y: e.clientY }, svg.current));
        }}
        {...gestures}
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {l.boxes
          .filter((b) => b.kind === "frame" && inside(b))
          .map((b) => (
            <Frame key={b.id} b={b} toggle={props.toggle} />
          ))}
        {l.edges
          .filter((e) => inside(e.extent))
          .map((e) => {
            const { out, dropped } = scale > 0.45 && !e.reference ? edgeRates(e, shown, byID) : none;
            return keep(e, `${out} ${dropped}`, () => (
              <EdgeLine key={`${e.from} ${e.to}`} e={e} out={out} dropped={dropped} vertical={l.vertical} />
            ));
          })}
        {l.boxes
          .filter((b) => b.kind !== "frame" && inside(b))
          .map((b) => {
            const nodes = b.nodes.map((id) => byID.get(id)).filter((n): n is Node => !!n);
            const state = worst(nodes);
            const text = scale > 0.3 || b.kind === "collapsed" ? boxRates(b, nodes, shown) : "";
            const faded = filter !== "" && !matches(filter, b.nodes.join(" "));
            return keep(b, `${state} ${text} ${b.id === selected} ${faded}`, () => (
              <NodeBox
                key={b.id}
                b={b}
                state={state}
                text={text}
                selected={b.id === selected}
                faded={faded}
                toggle={props.toggle}
              />
            ));
          })}
      </svg>
      <Minimap
        l={l}
        w={now}
        byID={byID}
        move={(x, y) => look({ ...now, x: x - now.width / 2, y: y - now.height / 2 })}
      />
    </div>
  );
}

/** What keys do: move by a part of the window, or zoom by a factor. */
const keys: Record<string, [number, number] | number> = {
  ArrowLeft: [-0.2, 0],
  ArrowRight: [0.2, 0],
  ArrowUp: [0, -0.2],
  ArrowDown: [0, 0.2],
  "+": 0.8,
  "-": 1.25,
};

function Frame({ b, toggle }: { b: Box; toggle: (id: string) => void }) {
  return (
    <g class="frame">
      <rect x={b.x} y={b.y} width={b.width} height={b.height} rx={10} />
      <text
        x={b.x + 8}
        y={b.y + 14}
        role="button"
        tabindex={0}
        aria-label={`Collapse ${b.id}`}
        onClick={() => toggle(b.id)}
        onKeyDown={(e) => onActivate(e, () => toggle(b.id))}
      >
        − {printable(b.label, 60)}
      </text>
    </g>
  );
}

function onActivate(e: KeyboardEvent, act: () => void) {
  if (e.key !== "Enter" && e.key !== " ") return;
  e.preventDefault();
  act();
}

const severity: State[] = ["unhealthy", "exited", "unknown", "healthy"];

/** The worst state of several nodes. */
function worst(nodes: Node[]): State {
  return severity.find((s) => nodes.some((n) => n.health.state === s)) ?? "unknown";
}

/** The text in a box: the rates of a node, or how many nodes a collapsed frame has. */
function boxRates(b: Box, nodes: Node[], shown: Shown): string {
  if (b.kind === "collapsed") return plural(nodes.length, "node");
  const r = shown.rates.get(b.id);
  return [r?.in && `${rate(r.in)} in`, r?.out && `${rate(r.out)} out`].filter(Boolean).join(" · ");
}

function NodeBox(props: {
  b: Box;
  state: State;
  text: string;
  selected: boolean;
  faded: boolean;
  toggle: (id: string) => void;
}) {
  const { b, state } = props;
  const collapsed = b.kind === "collapsed";
  const select = () => (collapsed ? props.toggle(b.id) : setQuery({ node: b.id }));
  return (
    <g
      class={`box ${state}${props.selected ? " selected" : ""}${props.faded ? " faded" : ""}`}
      role="button"
      tabindex={0}
      onClick={select}
      onKeyDown={(e) => onActivate(e, select)}
    >
      <rect x={b.x} y={b.y} width={b.width} height={b.height} rx={7} />
      <text class="symbol" x={b.x + 10} y={b.y + 19}>
        <title>{state}</title>
        {collapsed ? "+" : symbols[state]}
      </text>
      <text x={b.x + 26} y={b.y + 19}>
        {shorten(printable(b.label, 200), 44)}
      </text>
      <text class="soft" x={b.x + 26} y={b.y + 36}>
        {props.text || (state === "healthy" ? "" : state)}
      </text>
    </g>
  );
}

/** The middle of a long name is left out: names differ at their ends. */
function shorten(text: string, most: number) {
  return text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(-most / 2)}`;
}

const none = { out: "", dropped: "" };

/** The records per second that flow along an edge, and that its senders drop. */
function edgeRates(e: Edge, shown: Shown, byID: Map<string, Node>): { out: string; dropped: string } {
  // A node counts what it sends to each of its receivers.
  const share = (id: string) => (shown.rates.get(id)?.out ?? 0) / (byID.get(id)?.sends_to.length || 1);
  const sent = e.senders.reduce((t, id) => t + share(id), 0);
  const lost = e.senders.reduce((t, id) => t + (shown.rates.get(id)?.dropped ?? 0), 0);
  return sent > 0 ? { out: rate(sent), dropped: lost > 0 ? rate(lost) : "" } : none;
}

function EdgeLine({ e, out, dropped, vertical }: { e: Edge; out: string; dropped: string; vertical: boolean }) {
  const middle = e.points[Math.floor(e.points.length / 2)];
  return (
    <g class={e.reference ? "edge reference" : "edge"}>
      <path d={curve(e.points, vertical)} marker-end="url(#arrow)" />
      {out && middle && (
        <text
          x={middle.x + (vertical ? 8 : 0)}
          y={middle.y + (vertical ? 4 : -5)}
          text-anchor={vertical ? "start" : "middle"}
        >
          {out}
          {dropped && <tspan class="lost"> −{dropped}</tspan>}
        </text>
      )}
    </g>
  );
}

function curve(p: { x: number; y: number }[], vertical: boolean): string {
  const [first, ...rest] = p;
  if (!first) return "";
  let d = `M${first.x} ${first.y}`;
  let from = first;
  for (const to of rest) {
    const x = vertical ? 0 : (to.x - from.x) / 2;
    const y = vertical ? (to.y - from.y) / 2 : 0;
    d += `C${from.x + x} ${from.y + y} ${to.x - x} ${to.y - y} ${to.x} ${to.y}`;
    from = to;
  }
  return d;
}

function Minimap(props: { l: Layout; w: Window; byID: Map<string, Node>; move: (x: number, y: number) => void }) {
  const { l, w } = props;
  if (w.x <= 0 && w.y <= 0 && w.x + w.width >= l.width && w.y + w.height >= l.height) return null;
  return (
    <svg
      class="minimap"
      aria-hidden="true"
      viewBox={`0 0 ${l.width} ${l.height}`}
      preserveAspectRatio="xMidYMid meet"
      onPointerDown={(e) => {
        const m = e.currentTarget.getScreenCTM();
        if (!m) return;
        const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(m.inverse());
        props.move(at.x, at.y);
      }}
    >
      {l.boxes.map((b) => (
        <rect
          key={b.id}
          class={
            b.kind === "frame" ? "frame" : worst(b.nodes.map((id) => props.byID.get(id)).filter((n): n is Node => !!n))
          }
          x={b.x}
          y={b.y}
          width={b.width}
          height={b.height}
        />
      ))}
      <rect class="view" x={w.x} y={w.y} width={w.width} height={w.height} />
    </svg>
  );
}
