// The theme follows the system unless the user has chosen one in this browser.

export type Theme = "system" | "light" | "dark";

const key = "weir-theme";

export function theme(): Theme {
  const t = localStorage.getItem(key);
  return t === "light" || t === "dark" ? t : "system";
}

export function applyTheme(t: Theme = theme()) {
  if (t === "system") {
    localStorage.removeItem(key);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(key, t);
    document.documentElement.dataset.theme = t;
  }
}
