/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_LEAK_CASE_H
#define CM_TEST_LEAK_CASE_H

/* Documents for tests, from JSON with single quotes for double ones. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../reports/leak.h"
#include "../reports/leak_json.h"

#define LEAK_HEAD "{'format':'cumem-leak','version':1,"

/* A trainer with a lambda on itself and one tensor in a list. */
#define LEAK_LAMBDA                                                           \
    LEAK_HEAD                                                                 \
    "'pid':7,'rank':3,'host':'n7','devices':[{'name':'cuda:0',"               \
    "'peak_allocated':67108864,'dead_peak':33554432,"                         \
    "'dead_peak_iteration':4}],"                                              \
    "'sites':[{'id':1,'user_frame':1,'frames':["                              \
    "{'filename':'/lib/torch.py','line':9,'name':'f','library':true},"        \
    "{'filename':'/x/model.py','line':12,'name':'Enc.forward',"               \
    "'source':'  h = self.proj(x)'}]}],"                                      \
    "'vertices':["                                                            \
    "{'id':1,'annotation':'m.Trainer','type':'m.Trainer','kind':'object'},"   \
    "{'id':2,'annotation':'function T.<locals>.<lambda>',"                    \
    "'type':'function','kind':'function'},"                                   \
    "{'id':3,'annotation':'tuple','type':'tuple','kind':'container'},"        \
    "{'id':4,'annotation':'cell','type':'cell','kind':'cell'},"               \
    "{'id':5,'annotation':'list','type':'list','kind':'container'},"          \
    "{'id':6,'annotation':'Tensor [4, 5] float32 cuda:0 80 B',"               \
    "'type':'torch.Tensor','kind':'tensor','bytes':80,'site':1,"              \
    "'storage':1}],"                                                          \
    "'edges':["                                                               \
    "{'id':1,'annotation':'.cb','tail':1,'head':2},"                          \
    "{'id':2,'annotation':'__closure__','tail':2,'head':3},"                  \
    "{'id':3,'annotation':'cell self','tail':3,'head':4},"                    \
    "{'id':4,'annotation':'cell self','tail':4,'head':1,'made_at':["          \
    "{'filename':'/x/train.py','line':57,'name':'T.__init__',"                \
    "'source':'self.cb = lambda o: self.store(o)','certain':true}]},"         \
    "{'id':5,'annotation':'.acts','tail':1,'head':5},"                        \
    "{'id':6,'annotation':'[0]','tail':5,'head':6}],"                         \
    "'storages':[{'id':1,'device':'cuda:0','address':'0x7f00','bytes':80,"    \
    "'site':1,'vertices':[6]}],"                                              \
    "'cycles':[{'fingerprint':'3f9a2c0000000001','class':'collectable',"      \
    "'vertices':[1,2,3,4],'payload':[1],'bytes_each':16777216,'count':2,"     \
    "'peak_bytes':33554432,'total_bytes':33554432,'trigger':'gc',"            \
    "'cut':[4],'rule':'lambda_on_self','advice':'capture weakref.ref(self)"   \
    " in the lambda'}]}"

/* One device when 8 GiB were asked for, with all that is said of it. */
#define LEAK_MEMORY                                                           \
    LEAK_HEAD                                                                 \
    "'devices':[{'name':'cuda:0','total':107374182400,"                       \
    "'allocated':75161927680,'reserved':85899345920,"                         \
    "'peak_allocated':75161927680,'dead_peak':0,'cached':10737418240,"        \
    "'pending_free':0,'private_pools':0,'outside_frameworks':2147483648,"     \
    "'other_processes':1073741824,'free':18253611008,"                        \
    "'largest_free':104857600,'asked_bytes':8589934592,"                      \
    "'frameworks':[{'name':'torch','allocated':75161927680,"                  \
    "'reserved':85899345920},{'name':'jax','allocated':0}],"                  \
    "'pools':[{'name':'common','reserved':85899345920,"                       \
    "'allocated':75161927680,'requested':64424509440,'pending_free':0,"       \
    "'largest_free':104857600,'segments':214}],"                              \
    "'iterations':[[0,5,6,7],[1,6,6,null]]}],"                                \
    "'sites':[{'id':4,'user_frame':0,'frames':[{'filename':'/x/train.py',"    \
    "'line':57,'name':'main','source':'loss = model(x)'}]}],"                 \
    "'storages':[{'id':1,'device':'cuda:0','bytes':80,'block_bytes':512,"     \
    "'stream':'0x7f','pool':'(0, 1)','thread':4711,'awaited':true}],"         \
    "'held':[{'device':'cuda:0','framework':'torch','site':4,"                \
    "'awaited':true,'bytes':9663676416,'count':192},"                         \
    "{'device':'cuda:0','framework':'torch','bytes':5368709120,'count':3},"   \
    "{'device':'cuda:0','framework':'driver','library':'libnccl.so.2',"       \
    "'bytes':1073741824,'count':2}]}"

/* Each verdict once. */
#define LEAK_GROWTH                                                           \
    LEAK_HEAD                                                                 \
    "'sites':[{'id':1,'user_frame':1,'frames':["                              \
    "{'filename':'/lib/torch.py','line':9,'name':'f','library':true},"        \
    "{'filename':'/x/train.py','line':41,'name':'step',"                      \
    "'source':'  loss = model(batch)'}]},"                                    \
    "{'id':2,'user_frame':0,'frames':[{'filename':'/x/train.py',"             \
    "'line':42,'name':'step','source':'  loss.backward()'}]}],"               \
    "'growth':["                                                              \
    "{'fingerprint':'0123450000000000','site':1,'category':'saved for "       \
    "backward',"                                                              \
    "'device':'cuda:0','verdict':'leak','holder':["                           \
    "{'annotation':'train.py:80 main','edge':''},"                            \
    "{'annotation':'list of 409','edge':'local losses'},"                     \
    "{'annotation':'loss','edge':'[0]'},{'annotation':'grad_fn'}],"           \
    "'holder_at':1,'retained_bytes':1715470336,"                              \
    "'made_at':[{'filename':'/x/train.py','line':80,'name':'main',"           \
    "'source':'  losses.append(loss)','certain':true}],"                      \
    "'bytes_per_iteration':4194304,'count_per_iteration':1.5,"                \
    "'since_iteration':3,'bytes':1715470336,'count':409,"                     \
    "'peak_bytes':1715470336,'series':[[0,0,0],[3,0,0],[412,409,"             \
    "1715470336]],'autograd_depth':1,'confidence':0.998,"                     \
    "'iterations_to_full':1948,'seconds_to_full':3247.5,"                     \
    "'rule':'losses','advice':'losses.append(loss.item())',"                  \
    "'names':['losses[0]'],'library':null},"                                  \
    "{'site':2,'awaited':true,'category':'gradient','device':'cuda:0',"       \
    "'verdict':'lingering','since_iteration':1,'bytes':101711872,"            \
    "'peak_bytes':101711872,'rule':'gradients','names':["                     \
    "'layer1.0.weight.grad','layer1.0.bias.grad'],'advice':"                  \
    "'optimizer.zero_grad(set_to_none=True) before the forward pass'},"       \
    "{'fingerprint':'55b1e00000000000','category':'other',"                   \
    "'device':'cuda:0','verdict':'growing','since_iteration':8,"              \
    "'bytes_per_iteration':1048576,'bytes':4194304,'confidence':0.61},"       \
    "{'category':'optimizer state','device':'cuda:0','verdict':'settled',"    \
    "'since_iteration':1,'bytes':203423744},"                                 \
    "{'category':'parameter','device':'cuda:0','verdict':'ok',"               \
    "'bytes':524288}],"                                                       \
    "'timeline':{'by':'optimizer','devices':[{'name':'cuda:0','categories':[" \
    "'parameter','saved for "                                                 \
    "backward'],'points':[[0,0,524288,0],[3,0.25,524288,0],"                  \
    "[412,31.125,524288,1715470336]]}]},"                                     \
    "'collections':[{'iteration':4,'generation':2,'duration_us':900,"         \
    "'collected':17,'device_bytes_freed':0}],"                                \
    "'collector':{'seen':40,'duration_us':36000,'longest_us':2100,"           \
    "'collected':680,'device_bytes_freed':0}}"

/* Growth of one container by three lines, and what is not of that fault: another
 * container, another device, another mend, a dead cycle. */
#define LEAK_FAULT_LINE(line, bytes, device, way, items, advice, rule)        \
    "{'site':" #line ",'category':'other','device':'" device                  \
    "','verdict':'leak','since_iteration':" #line                             \
    ",'holder':[{'annotation':'train.py:80 main','edge':''},"                 \
    "{'annotation':'list of " items "','edge':'local " way "'},"              \
    "{'annotation':'dict of " #line "','edge':'[0]'}],'holder_at':1,"         \
    "'made_at':[{'filename':'/x/train.py','line':80,'name':'main'}],"         \
    "'bytes_per_iteration':" #bytes ",'count_per_iteration':1,"               \
    "'bytes':" #bytes "0,'count':10,'peak_bytes':" #bytes "0,"                \
    "'series':[[" #line ",1," #bytes "],[12,10," #bytes "0]],"                \
    "'confidence':0.9" #line ",'advice':'" advice "','rule':'" rule "'}"
#define LEAK_FAULT_SITE(id)                                                   \
    "{'id':" #id                                                              \
    ",'user_frame':0,'frames':[{'filename':'/x/net.py','line':" #id           \
    ",'name':'forward','source':'h" #id " = f(x)'}]}"
#define LEAK_FAULTS                                                                                                                                                                     \
    LEAK_HEAD "'sites':[" LEAK_FAULT_SITE(1) "," LEAK_FAULT_SITE(2) "," LEAK_FAULT_SITE(3) "," LEAK_FAULT_SITE(4) "," LEAK_FAULT_SITE(5) "," LEAK_FAULT_SITE(6) "," LEAK_FAULT_SITE(    \
        7) "],'growth':"                                                                                                                                                                \
           "[" LEAK_FAULT_LINE(1, 100000, "cuda:0", "kept", "9", "clear kept", "list") "," LEAK_FAULT_LINE(2, 600000, "cuda:0", "more", "9", "clear kept", "list") "," LEAK_FAULT_LINE( \
               3, 300000, "cuda:0", "kept", "10", "clear kept",                                                                                                                         \
               "list") "," LEAK_FAULT_LINE(4, 500000, "cuda:1", "kept", "9",                                                                                                            \
                                           "clear kept",                                                                                                                                \
                                           "list") "," LEAK_FAULT_LINE(5,                                                                                                               \
                                                                       250000,                                                                                                          \
                                                                       "cuda"                                                                                                           \
                                                                       ":0",                                                                                                            \
                                                                       "kep"                                                                                                            \
                                                                       "t",                                                                                                             \
                                                                       "9",                                                                                                             \
                                                                       "clea"                                                                                                           \
                                                                       "r "                                                                                                             \
                                                                       "kep"                                                                                                            \
                                                                       "t",                                                                                                             \
                                                                       "lis"                                                                                                            \
                                                                       "t") "," LEAK_FAULT_LINE(6,                                                                                      \
                                                                                                200000,                                                                                 \
                                                                                                "cuda:0",                                                                               \
                                                                                                "kept",                                                                                 \
                                                                                                "9",                                                                                    \
                                                                                                "detach()",                                                                             \
                                                                                                "graph") "," LEAK_FAULT_LINE(7,                                                         \
                                                                                                                             150000,                                                    \
                                                                                                                             "cuda:0",                                                  \
                                                                                                                             "kept",                                                    \
                                                                                                                             "9",                                                       \
                                                                                                                             "clear kept",                                              \
                                                                                                                             "dead cycle") "],'timeline':{'by':'step','devices':[{'name':'cuda:0','categories':['other'],'points':[[0,0,0],[12,9,9000000]]}]}}"

/* What every document has: LEAK_HEAD, and these of which it says nothing. */
static inline const char *
leak_add_head(const char *text, struct cm_buffer *json)
{
    static const char *const keys[] = {"'cycles':", "'growth':"};
    size_t length = strlen(LEAK_HEAD);

    if (strncmp(text, LEAK_HEAD, length) != 0) {
        return text;
    }
    cm_buffer_add(json, text, length);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strstr(text, keys[i]) == NULL) {
            cm_buffer_addf(json, "%s[],", keys[i]);
        }
    }
    return text + length;
}

static inline enum cm_status
leak_parse(const char *text, struct cm_leak *leak,
           char error[CM_LEAK_JSON_ERROR_BYTES])
{
    struct cm_buffer json = {0};
    enum cm_status status;

    text = leak_add_head(text, &json);
    cm_buffer_add_text(&json, text);
    status = cm_buffer_status(&json);
    for (size_t i = 0; status == CM_OK && i < json.length; i++) {
        json.bytes[i] = json.bytes[i] == '\'' ? '"' : json.bytes[i];
    }
    if (status == CM_OK) {
        status =
            cm_leak_json_read(cm_buffer_text(&json), json.length, leak, error);
    }
    cm_buffer_release(&json);
    return status;
}

static inline struct cm_leak
leak_of(const char *text)
{
    char error[CM_LEAK_JSON_ERROR_BYTES];
    struct cm_leak leak = {0};

    if (leak_parse(text, &leak, error) != CM_OK) {
        print_error("%s\n", error);
        fail();
    }
    return leak;
}

#endif
