(function () {
  "use strict";
  var TOP = 8;
  var SVG = "http://www.w3.org/2000/svg";

  function size(bytes) {
    var names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    var i = 0;
    while (bytes >= 1023.5 && i + 1 < names.length) {
      bytes /= 1024;
      i += 1;
    }
    return (i > 0 && bytes < 9.95 ? bytes.toFixed(1) : bytes.toFixed(0)) +
      " " + names[i];
  }

  /* Rows of differences, as plot.c writes them. */
  function rows(text, width) {
    var last = new Array(width).fill(0);
    return text.split(";").map(function (row) {
      row.split(" ").forEach(function (number, i) {
        last[i] += Number(number);
      });
      return last.slice();
    });
  }

  function step(range, most) {
    var power = Math.pow(10, Math.floor(Math.log10(range / most)));
    var parts = range / most / power;
    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
  }

  function element(parent, name, attributes, text) {
    var made = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) {
      made.setAttribute(key, attributes[key]);
    });
    if (text !== undefined) {
      made.textContent = text;
    }
    parent.appendChild(made);
    return made;
  }

  function Plot(place) {
    var figure = place.closest("figure");
    var svg = place.querySelector(".axes");
    var paths = Array.from(place.querySelectorAll(".layers path")).reverse();
    var lines = Array.from(place.querySelectorAll("polyline.slope"));
    var slopes = Array.from(place.querySelectorAll("text.slope"));
    var since = place.querySelector(".since");
    var levels = place.querySelector(".levels");
    var marks = place.querySelector(".marks");
    var ticks = place.querySelector(".ticks path");
    var reading = figure.querySelector(".reading");
    var keys = Array.from(figure.querySelectorAll(".legend b")).reverse();
    var unit = Number(place.dataset.unit);
    var height = Number(place.dataset.height);
    var by = place.dataset.by;
    var width = place.dataset.rows.split(";")[0].split(" ").length;
    var points = rows(place.dataset.rows, width);
    var all = [points[0][0], points[points.length - 1][0]];
    var view = all.slice();
    var cursor = points.length - 1;
    var top = 1;
    var brush = null;
    var sums = points.map(function (point) {
      var sum = 0;
      return point.slice(2).map(function (bytes) {
        sum += bytes;
        return sum;
      });
    });
    /* Layers that are empty throughout have no path. */
    var drawn = points[0].slice(2).map(function (unused, i) {
      return points.some(function (point) {
        return point[i + 2] > 0;
      });
    });
    var series = lines.map(function (line) {
      return rows(line.dataset.line, 2);
    });
    var at = element(svg, "line", { "class": "at", y1: TOP,
      y2: TOP + height, visibility: "hidden" });
    var band = element(svg, "rect", { "class": "brush", y: TOP,
      height: height, width: 0 });
    var button = document.createElement("button");
    var hint = document.createElement("span");

    function share(x) {
      return (x - view[0]) / Math.max(view[1] - view[0], 1);
    }

    function percent(x) {
      return (100 * share(x)).toFixed(3) + "%";
    }

    function across(x) {
      return Math.round(Math.max(-1, Math.min(2, share(x))) * 20000) / 10;
    }

    function upwards(bytes) {
      return Math.round(10000 * (1 - bytes / top)) / 10;
    }

    /* First point not before x, by halves. */
    function find(x) {
      var low = 0;
      var high = points.length;
      while (low < high) {
        var middle = (low + high) >> 1;
        if (points[middle][0] < x) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return Math.min(low, points.length - 1);
    }

    /* The multiples of `by` in sight: as many as can be told apart. */
    function multiples(by) {
      var first = Math.ceil(view[0] / by);
      var count = Math.floor(view[1] / by) - first + 1;
      return Array.from({ length: Math.min(Math.max(count, 0), 60) },
        function (unused, i) {
          return (first + i) * by;
        });
    }

    function axes() {
      var range = Math.max(view[1] - view[0], 1);
      var wide = Math.max(step(range, place.clientWidth > 600 ? 9 : 5), 1);
      var small = Math.max(wide / 5, 1);
      var power = 1;
      var i;
      levels.textContent = marks.textContent = "";
      while (top * unit / power >= 1024) {
        power *= 1024;
      }
      var high = step(top * unit / power, height < 120 ? 3 : 4) * power;
      for (i = 0; i * high <= top * unit && i < 20; i += 1) {
        var y = TOP + height - Math.round(i * high / (top * unit) * height);
        element(levels, "line", { x1: 0, x2: "100%", y1: y, y2: y });
        element(levels, "text", { "class": "y", x: -8, y: y + 4 },
          i ? size(i * high).replace(".0 ", " ") : "0");
      }
      var d = "";
      multiples(small).forEach(function (x) {
        d += "M" + across(x) + " 0v3";
      });
      multiples(wide).forEach(function (x) {
        d += "M" + across(x) + " 0v6";
        element(marks, "text", { "class": "x", x: percent(x),
          y: TOP + height + 19 }, String(x));
      });
      ticks.setAttribute("d", d);
    }

    function draw() {
      var first = Math.max(find(view[0]) - 1, 0);
      var last = Math.min(find(view[1]) + 1, points.length - 1);
      var shown = 0;
      var i;
      top = 1;
      for (i = find(view[0]); i <= last; i += 1) {
        if (points[i][0] <= view[1]) {
          top = Math.max(top, sums[i][sums[i].length - 1]);
        }
      }
      series.forEach(function (line) {
        line.forEach(function (row) {
          if (row[0] >= view[0] && row[0] <= view[1]) {
            top = Math.max(top, row[1]);
          }
        });
      });
      drawn.forEach(function (is, layer) {
        if (!is) {
          return;
        }
        var d = "M" + across(points[first][0]) + " 1000L";
        for (i = first; i <= last; i += 1) {
          d += across(points[i][0]) + " " + upwards(sums[i][layer]) + " ";
        }
        paths[shown].setAttribute("d",
          d + across(points[last][0]) + " 1000Z");
        shown += 1;
      });
      var taken = [];
      lines.forEach(function (line, j) {
        line.setAttribute("points", series[j].map(function (row) {
          return across(row[0]) + " " + upwards(row[1]);
        }).join(" "));
        var end = series[j].filter(function (row) {
          return row[0] <= view[1];
        }).pop() || [0, 0];
        var y = TOP + height - Math.round(end[1] / top * height) - 8;
        y = y < TOP + 10 ? TOP + 44 : y;
        taken.forEach(function (other) {
          y = Math.abs(y - other) < 14 ? other + 14 : y;
        });
        taken.push(y);
        slopes[j].setAttribute("y", y);
      });
      if (since) {
        var hidden = since.dataset.x < view[0] || since.dataset.x > view[1];
        since.setAttribute("visibility", hidden ? "hidden" : "visible");
        since.setAttribute("x1", percent(since.dataset.x));
        since.setAttribute("x2", percent(since.dataset.x));
      }
      axes();
      button.hidden = view[0] === all[0] && view[1] === all[1];
      hint.hidden = !button.hidden;
    }

    function read(point, mark) {
      var row = points[point];
      cursor = point;
      reading.textContent = by + " " + row[0] +
        (place.closest(".small") ? "" : ", " +
          (row[1] / 1000).toFixed(row[1] < 1e5 ? 1 : 0) + " s") + ": ";
      var sum = document.createElement("b");
      sum.textContent = size(sums[point][sums[point].length - 1] * unit);
      reading.appendChild(sum);
      keys.forEach(function (key, i) {
        key.textContent = size(row[i + 2] * unit);
      });
      at.setAttribute("visibility", mark ? "visible" : "hidden");
      at.setAttribute("x1", percent(row[0]));
      at.setAttribute("x2", percent(row[0]));
    }

    function zoom(low, high) {
      low = Math.max(all[0], low);
      high = Math.min(all[1], high);
      if (high - low >= 2) {
        view = [Math.floor(low), Math.ceil(high)];
        draw();
        read(cursor, points[cursor][0] >= view[0] &&
          points[cursor][0] <= view[1]);
      }
    }

    function whole() {
      view = all.slice();
      draw();
      read(points.length - 1, false);
    }

    function under(event) {
      var box = place.getBoundingClientRect();
      var part = (event.clientX - box.left) / box.width;
      return view[0] + Math.max(0, Math.min(1, part)) * (view[1] - view[0]);
    }

    function nearest(x) {
      var i = find(x);
      return i > 0 && x - points[i - 1][0] < points[i][0] - x ? i - 1 : i;
    }

    function move(event) {
      var x = under(event);
      read(nearest(x), true);
      if (brush !== null) {
        var low = 100 * share(Math.min(brush, x));
        band.setAttribute("x", low + "%");
        band.setAttribute("width", 100 * share(Math.max(brush, x)) - low + "%");
      }
    }

    function drop(event) {
      if (brush !== null) {
        var x = under(event);
        var from = brush;
        brush = null;
        band.setAttribute("width", 0);
        if (Math.abs(share(x) - share(from)) > 0.01) {
          zoom(Math.min(x, from), Math.max(x, from));
        }
      }
    }

    function key(event) {
      var range = view[1] - view[0];
      var x = points[cursor][0];
      var by = event.key === "ArrowLeft" ? -1 : 1;
      if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        var next = event.shiftKey ? nearest(x + by * range / 10)
          : Math.max(0, Math.min(points.length - 1, cursor + by));
        read(next, true);
        x = points[next][0];
        if (x < view[0] || x > view[1]) {
          zoom(x < view[0] ? x : x - range, x < view[0] ? x + range : x);
        }
      } else if (event.key === "Home" || event.key === "End") {
        read(event.key === "Home" ? find(view[0])
          : nearest(view[1]), true);
      } else if (event.key === "+" || event.key === "=") {
        zoom(x - range / 4, x + range / 4);
      } else if (event.key === "-") {
        zoom(x - range, x + range);
      } else if (event.key === "0" || event.key === "Escape") {
        whole();
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    }

    button.type = "button";
    button.className = "all";
    button.textContent = "Show all";
    button.hidden = true;
    button.addEventListener("click", whole);
    hint.className = "hint";
    hint.textContent = "drag to zoom, ? for keys";
    figure.appendChild(button);
    figure.appendChild(hint);
    place.classList.add("live");
    place.tabIndex = 0;
    place.setAttribute("role", "application");
    place.setAttribute("aria-label", "Memory over the " + by +
      "s: left and right read, plus and minus zoom, 0 shows all");
    place.addEventListener("pointermove", move);
    place.addEventListener("pointerleave", function () {
      if (brush === null) {
        read(points.length - 1, false);
      }
    });
    place.addEventListener("pointerdown", function (event) {
      if (event.button === 0) {
        brush = under(event);
        place.setPointerCapture(event.pointerId);
      }
    });
    place.addEventListener("pointerup", drop);
    place.addEventListener("pointercancel", function () {
      brush = null;
      band.setAttribute("width", 0);
    });
    place.addEventListener("dblclick", whole);
    place.addEventListener("keydown", key);
    draw();
  }

  /* Those that are not seen yet are made when they are. */
  var waiting = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting) {
        waiting.unobserve(entry.target);
        Plot(entry.target);
      }
    });
  });
  document.querySelectorAll(".plot").forEach(function (place) {
    waiting.observe(place);
  });
})();
