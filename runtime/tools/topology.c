/* What the machine has, and which PE takes what of it: by the functions by which PEs choose. */
#define _GNU_SOURCE
#include "runtime/tools/topology.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/node/choose_device.h"

/* ---- Reading ---- */

static int add_node(struct topology *t, int number, const char *cpus)
{
    struct topology_node *n = &t->node[t->nodes];

    n->number = number;
    snprintf(n->cpus, sizeof n->cpus, "%s", cpus);
    return t->nodes++;
}

/* The place of a node in the table. */
static int topology_place_of(struct topology *t, int number)
{
    for (int i = 0; i < t->nodes; i++) {
        if (t->node[i].number == number)
            return i;
    }
    if (t->nodes < TOPOLOGY_NODES || number < 0)
        return add_node(t, number, "");
    return topology_place_of(t, -1); /* the table has one place more, for these */
}

/* The CPUs that this process may use; of another machine, all. */
static void find_cpus(const struct topology *t, bool own, cpu_set_t *cpus)
{
    cpu_set_t of_node;

    CPU_ZERO(cpus);
    if (own && sched_getaffinity(0, sizeof *cpus, cpus) == 0)
        return;
    for (int i = 0; i < t->nodes; i++) {
        nics_read_list(t->node[i].cpus, &of_node);
        CPU_OR(cpus, cpus, &of_node);
    }
}

static int nth_cpu(const cpu_set_t *cpus, int n)
{
    int cpu = 0;

    while (cpu < CPU_SETSIZE && (!CPU_ISSET(cpu, cpus) || n-- > 0))
        cpu++;
    return cpu;
}

/* A PE takes the RDMA NICs that are nearest; which of equally near ones it prefers depends on its
 * index and on the peer's NICs. */
static void choose_nics(struct topology *t, const char *sys, struct topology_pe *pe,
                        const struct nic_center *center)
{
    enum nic_distance nearest = NIC_UNKNOWN;
    const char *text[NICS_MOST];
    enum nic_distance distance[NICS_MOST];

    pe->how_near = "";
    for (int i = 0; i < t->nics; i++) {
        text[i] = "";
        distance[i] = t->nic[i].rdma[0] ? nics_distance(sys, center, t->nic[i].rdma, &text[i])
                                        : NIC_UNKNOWN;
        if (t->nic[i].rdma[0] && distance[i] < nearest)
            nearest = distance[i];
    }
    for (int i = 0; i < t->nics; i++) {
        pe->nic[i] = t->nic[i].rdma[0] && distance[i] == nearest;
        if (pe->nic[i])
            pe->how_near = text[i];
    }
}

static void topology_choose(struct topology *t, const char *sys, bool own, const cpu_set_t *cpus)
{
    const int n = CPU_COUNT(cpus);

    for (int i = 0; i < t->pes; i++) {
        struct topology_pe *pe = &t->pe[i];
        struct nic_center center = {.node = -1};
        int nodes;
        if (own)
            device_find_center(i, true, &center, &nodes);
        else if (t->gpus)
            memcpy(center.pci, t->gpu[i % t->gpus], sizeof center.pci);
        if (!own)
            center.node = nics_node_of(sys, cpus, &nodes);
        pe->cpu = n ? nth_cpu(cpus, i % n) : -1;
        memcpy(pe->gpu, center.pci, sizeof pe->gpu);
        choose_nics(t, sys, pe, &center);
    }
}

void topology_read(struct topology *t, const char *sys, int pes)
{
    const bool own = strcmp(sys, "/sys") == 0;
    char list[sizeof t->node[0].cpus];
    cpu_set_t cpus;

    memset(t, 0, sizeof *t);
    for (int number = 0; number < TOPOLOGY_NODES; number++) {
        if (nics_cpus_of_node(sys, number, list, sizeof list))
            add_node(t, number, list);
    }
    t->gpus = nics_gpus(sys, t->gpu, GPUS_MOST);
    for (int i = 0; i < t->gpus; i++)
        t->gpu_node[i] = topology_place_of(t, nics_node_of_device(sys, t->gpu[i]));
    t->nics = nics_survey(sys, t->gpus ? t->gpu[0] : NULL, t->nic, NICS_MOST);
    for (int i = 0; i < t->nics; i++)
        t->nic_node[i] = topology_place_of(t, nics_node_of_device(sys, t->nic[i].pci));
    for (int i = 0; i < t->nics; i++) {
        for (int g = 0; g < t->gpus; g++)
            t->distance[i][g] = nics_between(sys, t->gpu[g], t->nic[i].pci);
    }
    find_cpus(t, own, &cpus);
    t->pes = pes ? pes : t->gpus ? t->gpus : CPU_COUNT(&cpus);
    t->pes = t->pes < TOPOLOGY_PES ? t->pes : TOPOLOGY_PES;
    topology_choose(t, sys, own, &cpus);
}

/* ---- Text ---- */

static const char *nic_name(const struct nic *n)
{
    return n->rdma[0] ? n->rdma : n->interface;
}

static const char *short_distance(enum nic_distance d)
{
    static const char *const text[] = {
        [NIC_SAME_SWITCH] = "switch", [NIC_SAME_PORT] = "port", [NIC_SAME_NODE] = "node",
        [NIC_ELSEWHERE] = "far",      [NIC_UNKNOWN] = "?",
    };

    return text[d];
}

static void print_node(FILE *to, const struct topology *t, int at)
{
    const struct topology_node *n = &t->node[at];

    if (n->number < 0)
        fprintf(to, "  NUMA node not known\n");
    else
        fprintf(to, "  NUMA node %-4d CPUs %s\n", n->number, n->cpus[0] ? n->cpus : "none");
    for (int i = 0; i < t->gpus; i++) {
        if (t->gpu_node[i] == at)
            fprintf(to, "    GPU          %s\n", t->gpu[i]);
    }
    for (int i = 0; i < t->nics; i++) {
        const struct nic *nic = &t->nic[i];
        if (t->nic_node[i] == at)
            fprintf(to, "    NIC          %-12s %-12s %s\n", nic->pci[0] ? nic->pci : "-",
                    nic->rdma[0] ? nic->rdma : "no RDMA", nic->interface);
    }
}

static void print_distances(FILE *to, const struct topology *t)
{
    if (!t->gpus || !t->nics)
        return;
    fprintf(to,
            "\nBetween NICs and GPUs: behind one PCIe switch, behind one root port, on one NUMA "
            "node, or far\n  %-14s",
            "");
    for (int i = 0; i < t->gpus; i++)
        fprintf(to, " %-12s", t->gpu[i]);
    fputc('\n', to);
    for (int n = 0; n < t->nics; n++) {
        fprintf(to, "  %-14s", nic_name(&t->nic[n]));
        for (int i = 0; i < t->gpus; i++)
            fprintf(to, " %-12s", short_distance(t->distance[n][i]));
        fputc('\n', to);
    }
}

static void print_pe(FILE *to, const struct topology *t, int i)
{
    const struct topology_pe *pe = &t->pe[i];
    const char *between = "";

    fprintf(to, "  PE %-4d CPU %-4d", i, pe->cpu);
    if (t->gpus)
        fprintf(to, " GPU %-12s", pe->gpu[0] ? pe->gpu : "none");
    fprintf(to, " NIC ");
    for (int n = 0; n < t->nics; n++) {
        if (!pe->nic[n])
            continue;
        fprintf(to, "%s%s", between, nic_name(&t->nic[n]));
        between = ",";
    }
    fprintf(to, "%s%s%s\n", between[0] ? "" : "by the system's routes (TCP)",
            between[0] && pe->how_near[0] ? " " : "", between[0] ? pe->how_near : "");
}

void topology_print(FILE *to, const struct topology *t)
{
    fprintf(to, "Topology\n");
    for (int i = 0; i < t->nodes; i++)
        print_node(to, t, i);
    if (t->nodes == 0)
        fprintf(to, "  the system tells of no NUMA node\n");
    print_distances(to, t);
    fprintf(to, "\n%d PEs of a node, by their index there (--pes)\n", t->pes);
    for (int i = 0; i < t->pes; i++)
        print_pe(to, t, i);
}

/* ---- SVG ---- */

enum {
    BOX_WIDTH = 220,
    BOX_HEIGHT = 26,
    GAP = 12,
    LEFT = 20,
    TOP = 50,
    MARGIN = 40,
    SHOWN_PES = 12,
};

static void svg_text(FILE *to, int x, int y, const char *text)
{
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"start\">", x, y);
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", to);
        else
            fputc(*text, to);
    }
    fputs("</text>\n", to);
}

static void svg_box(FILE *to, int x, int y, const char *colour, const char *text)
{
    fprintf(to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
                "class=\"mark\"/>\n", x, y, BOX_WIDTH, BOX_HEIGHT, colour);
    svg_text(to, x + 8, y + 17, text);
}

/* A column for each NUMA node: its CPUs with their PEs, its GPUs, its NICs. Returns the end of the
 * column; *nic_y and *gpu_y: where these boxes are. */
static int draw_node(FILE *to, const struct topology *t, int at, int *gpu_y, int *nic_y)
{
    const int x = LEFT + at * (BOX_WIDTH + MARGIN);
    char text[80];
    int y = TOP;

    if (t->node[at].number < 0)
        snprintf(text, sizeof text, "NUMA node not known");
    else
        snprintf(text, sizeof text, "NUMA node %d: CPUs %.20s", t->node[at].number,
                 t->node[at].cpus);
    svg_box(to, x, y, "#e0e0e0", text);
    y += BOX_HEIGHT + GAP;
    cpu_set_t cpus;
    nics_read_list(t->node[at].cpus, &cpus);
    for (int i = 0, shown = 0; i < t->pes && shown < SHOWN_PES; i++) {
        if (t->pe[i].cpu < 0 || !CPU_ISSET(t->pe[i].cpu, &cpus))
            continue;
        if (++shown == SHOWN_PES)
            snprintf(text, sizeof text, "more PEs");
        else
            snprintf(text, sizeof text, "PE %d on CPU %d", i, t->pe[i].cpu);
        svg_text(to, x + 8, y + 8, text);
        y += 16;
    }
    y += GAP;
    for (int i = 0; i < t->gpus; i++) {
        if (t->gpu_node[i] != at)
            continue;
        snprintf(text, sizeof text, "GPU %s", t->gpu[i]);
        svg_box(to, x, gpu_y[i] = y, "#b7dfb0", text);
        y += BOX_HEIGHT + GAP;
    }
    for (int i = 0; i < t->nics; i++) {
        if (t->nic_node[i] != at)
            continue;
        snprintf(text, sizeof text, "%s NIC %s", t->nic[i].rdma[0] ? "RDMA" : "TCP",
                 nic_name(&t->nic[i]));
        svg_box(to, x, nic_y[i] = y, "#b0d0ef", text);
        y += BOX_HEIGHT + GAP;
    }
    return y;
}

/* From a GPU to the NICs that PEs take with it, on the left of the column or between two. */
static void draw_ways(FILE *to, const struct topology *t, const int *gpu_y, const int *nic_y)
{
    for (int g = 0; g < t->gpus; g++) {
        for (int i = 0, drawn = 0; i < t->pes && !drawn; i++) {
            if (strcmp(t->pe[i].gpu, t->gpu[g]) != 0)
                continue;
            drawn = 1; /* PEs with the same GPU take the same NICs */
            for (int n = 0; n < t->nics; n++) {
                if (!t->pe[i].nic[n])
                    continue;
                const int from = LEFT + t->gpu_node[g] * (BOX_WIDTH + MARGIN) + BOX_WIDTH;
                const int end = LEFT + t->nic_node[n] * (BOX_WIDTH + MARGIN) + BOX_WIDTH;
                const int bend = (from > end ? from : end) + 8 + 4 * (g % 7);
                fprintf(to,
                        "<path d=\"M %d %d H %d V %d H %d\" fill=\"none\" stroke=\"#0072b2\"/>\n",
                        from, gpu_y[g] + BOX_HEIGHT / 2, bend, nic_y[n] + BOX_HEIGHT / 2, end);
            }
        }
    }
}

void topology_draw(FILE *to, const struct topology *t)
{
    const int columns = t->nodes ? t->nodes : 1;
    int gpu_y[GPUS_MOST], nic_y[NICS_MOST], height = TOP;
    char *body = NULL;
    size_t bytes = 0;
    FILE *boxes = open_memstream(&body, &bytes); /* its height is known when it is drawn */

    if (!boxes)
        return;
    for (int i = 0; i < t->nodes; i++) {
        const int end = draw_node(boxes, t, i, gpu_y, nic_y);
        height = end > height ? end : height;
    }
    draw_ways(boxes, t, gpu_y, nic_y);
    fclose(boxes);
    const int width = 2 * LEFT + columns * (BOX_WIDTH + MARGIN);
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height + 20, width,
            height + 20, width, height + 20);
    svg_text(to, LEFT, 24, "CPUs, GPUs and NICs, and which PE takes which");
    fprintf(to, "%s</svg>\n", body);
    free(body);
}
