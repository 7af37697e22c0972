(function () {
  "use strict";
  var root = document.documentElement;
  var search = document.getElementById("search");
  var matches = document.getElementById("matches");
  var kind = document.getElementById("kind");
  var help = document.getElementById("help");
  var links = Array.from(document.querySelectorAll("nav a"));
  var panes = links.map(function (link) {
    return document.getElementById(link.hash.slice(1));
  });
  var words = panes.map(function (pane, i) {
    return (links[i].textContent + " " + (pane ? pane.textContent : ""))
      .toLowerCase();
  });
  var chosen = -1;

  function choose(i, scroll) {
    if (i < 0 || i >= links.length || !panes[i]) {
      return;
    }
    if (chosen >= 0) {
      panes[chosen].classList.remove("on");
      links[chosen].removeAttribute("aria-current");
    }
    chosen = i;
    panes[i].classList.add("on");
    links[i].setAttribute("aria-current", "true");
    var folded = links[i].closest("details");
    if (folded) {
      folded.open = true;
    }
    if (scroll) {
      links[i].scrollIntoView({ block: "nearest" });
      var desk = document.querySelector(".desk");
      if (desk.getBoundingClientRect().top < 0) {
        desk.scrollIntoView();
      }
    }
  }

  function pick(i) {
    choose(i, true);
    try {
      history.replaceState(null, "", links[i].hash);
    } catch (refused) {
      /* the choice is not in the address then */
    }
  }

  function visible(i) {
    return i >= 0 && panes[i] && !links[i].parentNode.hidden;
  }

  function step(by) {
    var i = chosen + by;
    while (i >= 0 && i < links.length && !visible(i)) {
      i += by;
    }
    if (i >= 0 && i < links.length) {
      pick(i);
    }
  }

  function filter() {
    var wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    var found = 0;
    var first = -1;
    links.forEach(function (link, i) {
      var item = link.parentNode;
      var fits = wanted.every(function (word) {
        return words[i].indexOf(word) >= 0;
      }) && (kind.value === "" || kind.value === item.dataset.kind);
      item.hidden = !fits;
      if (fits) {
        found += 1;
        first = first < 0 ? i : first;
      }
    });
    matches.textContent =
      found < links.length ? found + " of " + links.length : "";
    if (!visible(chosen)) {
      choose(first, true);
    }
    links.forEach(function (link) {
      var folded = link.closest("details");
      if (folded && found < links.length && !link.parentNode.hidden) {
        folded.open = true;
      }
    });
  }

  function copyBySelection(pre) {
    var range = document.createRange();
    range.selectNodeContents(pre);
    var folded = pre.closest("details");
    var wasOpen = folded.open;
    folded.open = true;
    var selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    var done = document.execCommand("copy");
    selection.removeAllRanges();
    folded.open = wasOpen;
    return done;
  }

  function copy(button) {
    var pre = button.closest("article").querySelector(".text pre");
    function said(done) {
      button.textContent = done ? "Copied" : "Not copied";
      setTimeout(function () {
        button.textContent = "Copy as text";
      }, 1500);
    }
    if (navigator.clipboard) {
      navigator.clipboard.writeText(pre.textContent).then(function () {
        said(true);
      }, function () {
        said(copyBySelection(pre));
      });
    } else {
      said(copyBySelection(pre));
    }
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) {
      return;
    }
    var typing = event.target === search;
    if (event.target === kind) {
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape" && typing) {
      search.value = "";
      filter();
      search.blur();
    } else if (event.key === "Enter" && typing) {
      search.blur();
    } else if (typing) {
      return;
    } else if (event.key === "/") {
      search.focus();
      search.select();
    } else if (event.key === "?") {
      help.showModal();
    } else if (event.key === "c" && chosen >= 0) {
      copy(panes[chosen].querySelector(".copy"));
    } else {
      return;
    }
    event.preventDefault();
  }

  function chooseByAddress() {
    var i = links.findIndex(function (link) {
      return link.hash === location.hash;
    });
    choose(i < 0 ? 0 : i, false);
  }

  if (links.length === 0) {
    return;
  }
  root.classList.add("js");
  search.closest("div").hidden = false;
  document.querySelectorAll(".folded").forEach(function (group) {
    group.open = true; /* the list folds instead */
  });
  document.querySelectorAll(".copy").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      copy(button);
    });
  });
  links.forEach(function (link, i) {
    link.addEventListener("click", function (event) {
      event.preventDefault();
      pick(i);
    });
  });
  search.addEventListener("input", filter);
  kind.addEventListener("input", filter);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", chooseByAddress);
  chooseByAddress();
})();
