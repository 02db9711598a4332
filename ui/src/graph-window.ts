// The part of the graph that the user looks at. The mouse, fingers and keys move it, and the URL holds it
// as the point in the middle and the scale, so that a link shows the same on a screen of another size.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Box, Layout } from "./graph-layout";
import { setQuery } from "./route";

export interface Point {
  x: number;
  y: number;
}

/** A rectangle of the graph, in its units. */
export interface Window extends Point {
  width: number;
  height: number;
}

/** The smallest scale at which a graph is drawn on a narrow screen before the user zooms. */
const readable = 0.8;
/** The largest scale. */
const largest = 10;
/** Room for the buttons above a graph. */
const margin = 44;
/** How long the window must be still before the URL holds it, in ms. */
const still = 300;

/** Pixels per unit of the graph. */
export const scaleOf = (w: Window, svg: SVGSVGElement) =>
  Math.min(svg.clientWidth / w.width, svg.clientHeight / w.height) || 1;

/** The window with the shape of the drawing area around a point. */
function around(middle: Point, scale: number, svg: SVGSVGElement): Window {
  const width = svg.clientWidth / scale;
  const height = svg.clientHeight / scale;
  return { x: middle.x - width / 2, y: middle.y - height / 2, width, height };
}

const middleOf = (w: Window): Point => ({ x: w.x + w.width / 2, y: w.y + w.height / 2 });

/** The window that contains the whole graph, at most at a little more than its size. */
export function fit(l: Layout, svg: SVGSVGElement | null): Window {
  if (!svg?.clientWidth) return { x: 0, y: 0, width: l.width, height: l.height };
  const scale = Math.min(svg.clientWidth / l.width, svg.clientHeight / l.height, 1.1);
  return around({ x: l.width / 2, y: l.height / 2 }, scale, svg);
}

/** The first window: the whole graph, or on a narrow screen as much as can be read. */
function first(l: Layout, selected: string, svg: SVGSVGElement | null): Window {
  const all = fit(l, svg);
  if (!l.vertical || !svg || scaleOf(all, svg) >= readable) return all;
  const b = l.boxes.find((b) => b.id === selected);
  if (b) return around(middleOf(b), readable, svg);
  return { ...around({ x: l.width / 2, y: 0 }, readable, svg), y: -margin };
}

const contains = (w: Window, b: Box) =>
  b.x >= w.x && b.x + b.width <= w.x + w.width && b.y >= w.y && b.y + b.height <= w.y + w.height;

const overlaps = (w: Window, l: Layout) => w.x < l.width && w.x + w.width > 0 && w.y < l.height && w.y + w.height > 0;

/** A window in the URL: X,Y,SCALE. */
function textOf(w: Window, svg: SVGSVGElement): string {
  const { x, y } = middleOf(w);
  return `${Math.round(x)},${Math.round(y)},${Number(scaleOf(w, svg).toPrecision(3))}`;
}

/** The window of a text, or undefined if it shows nothing of the graph. */
function windowOf(text: string, l: Layout, svg: SVGSVGElement | null): Window | undefined {
  const [, x, y, scale] = /^(-?\d{1,6}),(-?\d{1,6}),(\d{1,2}(?:\.\d{1,5})?)$/.exec(text)?.map(Number) ?? [];
  if (x === undefined || y === undefined || !scale || scale > largest || !svg?.clientWidth) return undefined;
  const w = around({ x, y }, scale, svg);
  return overlaps(w, l) ? w : undefined;
}

/** A window that shows more or less. The point at stays where it is; it is the middle by default. */
export function zoomed(w: Window, factor: number, l: Layout, svg: SVGSVGElement, at = middleOf(w)): Window {
  const scale = scaleOf(w, svg);
  const least = Math.min(Math.max(scaleOf(fit(l, svg), svg) / 2, 0.01), scale);
  const f = scale / Math.min(Math.max(scale / factor, least), largest);
  return { x: at.x - (at.x - w.x) * f, y: at.y - (at.y - w.y) * f, width: w.width * f, height: w.height * f };
}

/** The point of the graph at a point of the screen. */
export function toGraph(w: Window, p: Point, svg: SVGSVGElement): Point {
  const r = svg.getBoundingClientRect();
  const scale = scaleOf(w, svg);
  const { x, y } = middleOf(w);
  return { x: x + (p.x - r.left - r.width / 2) / scale, y: y + (p.y - r.top - r.height / 2) / scale };
}

/**
 * The window of a layout: what the parameter at of the URL names, or the first one. look changes it, and
 * then the URL.
 */
export function useWindow(l: Layout, selected: string, at: string, svg: RefObject<SVGSVGElement | null>) {
  const w = useRef<Window>({ x: 0, y: 0, width: l.width, height: l.height });
  const [, redraw] = useState(0);
  const place = (next: Window) => {
    w.current = next;
    redraw((n) => n + 1);
  };
  const known = useRef<{ l: Layout; at: string } | null>(null);
  const timer = useRef(0);
  const write = (text: string) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      if (known.current) known.current.at = text;
      setQuery({ at: text });
    }, still);
  };
  const look = (next: Window) => {
    place(next);
    if (!svg.current?.clientWidth) return;
    const text = textOf(next, svg.current);
    write(text === textOf(first(l, selected, svg.current), svg.current) ? "" : text);
  };
  useEffect(() => {
    const old = known.current;
    if (old?.l === l && old.at === at) return;
    clearTimeout(timer.current);
    // A place in an earlier layout says nothing about this one.
    const given = old?.at === at ? undefined : windowOf(at, l, svg.current);
    known.current = { l, at };
    place(given ?? first(l, selected, svg.current));
    if (at !== "" && !given) write("");
  }, [l, at]);
  useEffect(() => () => clearTimeout(timer.current), []);
  // A node that the search or the URL selects comes into the window.
  useEffect(() => {
    const b = l.boxes.find((b) => b.id === selected);
    if (b && svg.current && !contains(w.current, b))
      look(around(middleOf(b), scaleOf(w.current, svg.current), svg.current));
  }, [selected]);
  return { w: () => w.current, look };
}

/** How far a finger on a node moves before it drags the graph, in pixels. */
const slop = 8;

const middle = (points: Point[]): Point => ({
  x: points.reduce((t, p) => t + p.x, 0) / points.length,
  y: points.reduce((t, p) => t + p.y, 0) / points.length,
});

const distance = ([a, b]: Point[]) => (a && b ? Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1) : 1);

/** The handlers of a graph that one pointer drags, and two fingers zoom. */
export function useGestures(
  l: Layout,
  ref: RefObject<SVGSVGElement | null>,
  now: () => Window,
  look: (w: Window) => void,
): Record<"onPointerDown" | "onPointerMove" | "onPointerUp" | "onPointerCancel", (e: PointerEvent) => void> {
  const pointers = useRef(new Map<number, Point>());
  const start = useRef({ w: now(), points: [] as Point[] });
  const points = () => [...pointers.current.values()].slice(0, 2);
  const begin = () => {
    start.current = { w: now(), points: points() };
  };
  const end = (e: PointerEvent) => {
    if (pointers.current.delete(e.pointerId)) begin();
  };
  return {
    onPointerDown: (e) => {
      const button = (e.target as Element).closest("a,[role=button]");
      if (button && e.pointerType !== "touch") return;
      pointers.current.set(e.pointerId, { x: e.clientX, y: e.clientY });
      if (!button) ref.current?.setPointerCapture(e.pointerId);
      begin();
    },
    onPointerMove: (e) => {
      const svg = ref.current;
      if (!svg || !pointers.current.has(e.pointerId)) return;
      pointers.current.set(e.pointerId, { x: e.clientX, y: e.clientY });
      const { w, points: from } = start.current;
      const to = points();
      const a = middle(from);
      const b = middle(to);
      // A finger that moves less has touched a node.
      if (to.length === 1 && !svg.hasPointerCapture(e.pointerId) && Math.hypot(b.x - a.x, b.y - a.y) < slop) return;
      for (const id of pointers.current.keys()) svg.setPointerCapture(id);
      const next = to.length > 1 ? zoomed(w, distance(from) / distance(to), l, svg, toGraph(w, a, svg)) : w;
      const scale = scaleOf(next, svg);
      look({ ...next, x: next.x - (b.x - a.x) / scale, y: next.y - (b.y - a.y) / scale });
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}
