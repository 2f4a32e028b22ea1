// Runs before the first paint: the theme that this reader chose, else the system's.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("sparkmirror.theme") || "auto";
    } catch {
      return "auto"; // storage is forbidden: the system's theme
    }
  };
  const apply = () => {
    const theme = chosen();
    const shown = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    document.documentElement.dataset.theme = shown;
    dispatchEvent(new CustomEvent("theme", { detail: theme }));
  };
  const choose = (theme) => {
    try {
      localStorage.setItem("sparkmirror.theme", theme);
    } catch {
      document.documentElement.dataset.theme = theme; // for this visit only
      return;
    }
    apply();
  };
  globalThis.theme = { chosen, choose };
  dark.addEventListener("change", apply);
  apply();
})();
