// The view that a reader has chosen, as the fragment of the page's address: #SECTION?key=value&key=value. What is as on a fresh
// page is left out. A link is not trusted: each part takes the values that it offers itself and ignores the rest, and texts are only searched for.
const LONGEST = 20000;
const known = (value, offered, otherwise) => (offered.includes(value) ? value : otherwise);

const view = {
  parts: [],
  section: "",
  sections: [],
  timer: null,
  followed: "",
  // A part of the page: read() gives its entries [key, value], show(asked) takes a URLSearchParams.
  add(part) { this.parts.push(part); },
  fragment() {
    const query = new URLSearchParams(this.parts.flatMap((part) => part.read())).toString();
    return "#" + this.section + (query && "?" + query);
  },
  link() { return location.href.split("#")[0] + this.fragment(); },
  // Something was chosen: the address follows, a little later, since browsers limit how often it may change.
  changed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 150);
  },
  write() {
    const fragment = this.fragment();
    if (location.hash !== this.followed) return; // a new address that follow() has yet to show
    if (fragment === location.hash || !(fragment + location.hash).includes("?")) return;
    try { history.replaceState(null, "", fragment); this.followed = location.hash; } catch { /* the button still copies the link */ }
  },
  // Show what the address asks for. A plain link to a section changes nothing else.
  follow() {
    this.followed = location.hash;
    const [section, ...rest] = location.hash.slice(1, LONGEST).split("?");
    if (rest.length && location.hash.length < LONGEST) {
      const asked = new URLSearchParams(rest.join("?"));
      this.parts.forEach((part) => part.show(asked));
    }
    this.section = known(section, this.sections, this.section);
    if (this.section === section && section) document.getElementById(section).scrollIntoView({ behavior: "instant" });
    this.changed();
  },
  open(sections) {
    this.sections = sections;
    this.followed = location.hash;
    if (location.hash) this.follow();
    addEventListener("hashchange", () => this.follow());
  },
};

// Settings that are held, as entries under a prefix and back.
const heldEntries = (prefix, keep) => Object.entries(keep).map(([key, value]) => [prefix + key, value]);
const heldOf = (prefix, asked, curves) => Object.fromEntries(distinct(curves.flatMap((one) => Object.keys(one.held))).filter((key) => asked.has(prefix + key)).map((key) => [key, asked.get(prefix + key)]));
