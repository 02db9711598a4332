// The layout of the graph by dagre: boxes for nodes, frames for modules and foreach.

import { Graph as Dagre, layout as run } from "@dagrejs/dagre";
import type { Node } from "./api";

export interface Box {
  id: string;
  /** The last part of the ID, without the frames around the node. */
  label: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** The nodes that the box stands for: several for a collapsed frame. */
  nodes: string[];
  kind: "node" | "frame" | "collapsed";
}

export interface Edge {
  from: string;
  to: string;
  points: { x: number; y: number }[];
  /** What contains the points. */
  extent: { x: number; y: number; width: number; height: number };
  /** A reference to exports, without records. */
  reference: boolean;
  /** The nodes that send along the edge. */
  senders: string[];
}

export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  edges: Edge[];
  vertical: boolean;
}

const height = 46;
const charWidth = 7.6;

/** The frames around a node, outermost first: pipe.one and pipe.one/foreach.x for pipe.one/foreach.x/a.b. */
export function framesOf(id: string, ids: Set<string>): string[] {
  const out: string[] = [];
  for (let at = id.indexOf("/"); at >= 0; at = id.indexOf("/", at + 1)) {
    const frame = id.slice(0, at);
    // A label may contain a slash: only prefixes that are nodes, or of several nodes, are frames.
    if (ids.has(frame) || at > 0) out.push(frame);
  }
  return out;
}

/** Records flow to the right, or on a narrow screen (vertical) down. */
export function layout(nodes: Node[], collapsed: Set<string>, vertical = false): Layout {
  const ids = new Set(nodes.map((n) => n.id));
  const frames = new Set(nodes.flatMap((n) => framesOf(n.id, ids)));
  /** The box that shows a node: itself, or the outermost collapsed frame around it. */
  const boxOf = (id: string) => framesOf(id, ids).find((f) => collapsed.has(f)) ?? id;
  const g = new Dagre({ compound: true, multigraph: false });
  const [rankdir, ranksep] = vertical ? (["TB", 44] as const) : (["LR", 116] as const);
  g.setGraph({ rankdir, nodesep: 16, ranksep, marginx: 12, marginy: 12 });
  g.setDefaultEdgeLabel(() => ({}));
  const boxes = new Map<string, Box>();
  const add = (id: string, kind: Box["kind"], nodes: string[]) => {
    const parent = framesOf(id, ids).at(-1);
    const label = parent ? id.slice(parent.length + 1) : id;
    boxes.set(id, {
      id,
      label,
      kind,
      nodes,
      x: 0,
      y: 0,
      height,
      width: Math.max(190, Math.min(label.length, 44) * charWidth + 38),
    });
  };
  for (const n of nodes) {
    const box = boxOf(n.id);
    if (box !== n.id) {
      const b = boxes.get(box);
      if (b?.kind === "collapsed") b.nodes.push(n.id);
      else add(box, "collapsed", [n.id]);
      continue;
    }
    if (frames.has(n.id)) continue; // the frame stands for its module
    add(n.id, "node", [n.id]);
  }
  for (const f of frames) if (boxOf(f) === f && !boxes.has(f)) add(f, "frame", []);
  for (const b of boxes.values()) {
    g.setNode(b.id, b.kind === "frame" ? {} : { width: b.width, height: b.height });
    const parent = framesOf(b.id, ids).at(-1);
    if (parent && boxes.has(parent)) g.setParent(b.id, parent);
  }
  const edges = new Map<string, Edge>();
  // A frame cannot be the end of an edge: the edge of a module ends at one of its nodes.
  const end = (id: string) => {
    const b = boxes.get(boxOf(id));
    if (b?.kind !== "frame") return b?.id;
    return nodes.find((n) => n.id.startsWith(`${id}/`) && boxes.get(boxOf(n.id))?.kind === "node")?.id;
  };
  const connect = (a: string, b: string, reference: boolean, sender: string) => {
    const from = end(a);
    const to = end(b);
    if (!from || !to || from === to) return;
    const key = `${from}\u0000${to}`;
    const old = edges.get(key);
    if (old) {
      old.reference &&= reference;
      if (!reference) old.senders.push(sender);
      return;
    }
    edges.set(key, {
      from,
      to,
      points: [],
      extent: { x: 0, y: 0, width: 0, height: 0 },
      reference,
      senders: reference ? [] : [sender],
    });
    g.setEdge(from, to);
  };
  for (const n of nodes) {
    for (const to of n.sends_to) connect(n.id, to, false, n.id);
    // Values flow from the node that exports them.
    for (const of of n.depends_on) if (!n.sends_to.includes(of)) connect(of, n.id, true, n.id);
  }
  run(g);
  for (const b of boxes.values()) {
    const at = g.node(b.id) as { x: number; y: number; width: number; height: number };
    Object.assign(b, { width: at.width, height: at.height, x: at.x - at.width / 2, y: at.y - at.height / 2 });
  }
  for (const e of edges.values()) {
    e.points = ((g.edge(e.from, e.to) as { points?: Edge["points"] }).points ?? []).map(({ x, y }) => ({ x, y }));
    e.extent = extent(e.points);
  }
  const size = g.graph() as { width?: number; height?: number };
  return {
    width: Math.max(size.width ?? 0, 200),
    height: Math.max(size.height ?? 0, 80),
    // Frames are drawn first, outer ones before inner ones.
    boxes: [...boxes.values()].sort((a, b) => rank(a) - rank(b)),
    edges: [...edges.values()],
    vertical,
  };
}

function extent(points: Edge["points"]): Edge["extent"] {
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const x = Math.min(...xs);
  const y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x + 1, height: Math.max(...ys) - y + 1 };
}

const rank = (b: Box) => (b.kind === "frame" ? b.id.split("/").length : 1000);
